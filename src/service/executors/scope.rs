//! The executors of one watched scope: known, changed and not yet written, missing.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ops::Bound,
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    store::LiveExecutor,
    submission::{ExecutorKey, ExecutorObservation, ExecutorRecord, ExecutorSnapshots, ExecutorState},
};

/// How long the watch may take to show a pod that is younger than the last full list.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Scope {
    known: ExecutorSnapshots,
    /// Not written yet: the newest of each executor.
    changed: BTreeMap<ExecutorKey, ExecutorRecord>,
    /// The last full list, until it was compared with the rows.
    listed: Option<HashSet<ExecutorKey>>,
    /// How many full lists there were.
    lists: u64,
    /// Executors with a row and without a pod, and when they count as gone.
    missing: HashMap<ExecutorKey, (Instant, LiveExecutor)>,
}

impl Scope {
    pub(super) fn note(&mut self, seen: &ExecutorObservation) {
        if !self.missing.is_empty() {
            self.missing.remove(&seen.key());
        }
        if let Some(now) = self.known.take(seen) {
            self.change(now);
        }
    }

    pub(super) fn listed(&mut self, listed: HashSet<ExecutorKey>) {
        for vanished in self.known.listed(&listed) {
            self.change(vanished);
        }
        self.missing.retain(|key, _| !listed.contains(key));
        self.listed = Some(listed);
        self.lists += 1;
    }

    /// An end that was seen isn't overwritten while it waits.
    fn change(&mut self, now: ExecutorRecord) {
        let key = now.key();
        if self.changed.get(&key).is_none_or(|before| before.state.may_become(now.state)) {
            self.changed.insert(key, now);
        }
    }

    pub(super) fn changes(&self) -> usize {
        self.changed.len()
    }

    /// Up to `limit` changes behind `last`; they stay until they are `written`.
    pub(super) fn batch(&self, last: Option<&ExecutorKey>, limit: usize) -> Vec<ExecutorRecord> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.changed.range((from, Bound::Unbounded));
        behind.map(|(_, record)| record.clone()).take(limit).collect()
    }

    pub(super) fn written(&mut self, batch: &[ExecutorRecord]) {
        for record in batch {
            let key = record.key();
            if self.changed.get(&key) == Some(record) {
                self.changed.remove(&key);
            }
        }
    }

    pub(super) fn is_to_be_compared(&self) -> bool {
        self.listed.is_some()
    }

    pub(super) fn lists(&self) -> u64 {
        self.lists
    }

    /// Compares the rows that have not ended with the full list; `begun` is the number of lists when they were read.
    pub(super) fn compared(&mut self, begun: u64, live: Vec<LiveExecutor>, now: Instant) {
        if begun != self.lists {
            return;
        }
        let Some(listed) = self.listed.take() else { return };
        for executor in live {
            let there = listed.contains(&executor.key) || self.known.knows(&executor.key);
            if !there && !self.changed.contains_key(&executor.key) {
                self.missing.entry(executor.key.clone()).or_insert((now + GRACE, executor));
            }
        }
    }

    /// Those that are missing for long enough are gone.
    pub(super) fn give_up_missing(&mut self, now: Instant) {
        let due: Vec<_> = self.missing.extract_if(|_, (until, _)| *until <= now).collect();
        for (_, (_, executor)) in due {
            self.change(gone(executor));
        }
    }
}

fn gone(LiveExecutor { key: (submission, attempt, executor_id), pod_name, pod_uid }: LiveExecutor) -> ExecutorRecord {
    let last = ExecutorRecord {
        submission,
        attempt,
        executor_id,
        pod_name,
        pod_uid,
        state: ExecutorState::Unknown,
        exit_code: None,
        reason: None,
        message: None,
        node: None,
        created_at: None,
        started_at: None,
        finished_at: None,
    };
    last.vanished()
}

#[cfg(test)]
mod tests;
