//! The executors of one watched scope: known ones, changes not written yet, and pods to be looked up.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Bound,
};

use sparkgate_store::LiveExecutor;
use sparkgate_submission::{ExecutorKey, ExecutorObservation, ExecutorRecord, ExecutorSnapshots};

/// An executor and its owner: a pod that only carries the labels of an executor doesn't replace it.
pub(in crate::pod_follower) type Change = (ExecutorKey, Option<String>);

#[derive(Debug, Default)]
pub(in crate::pod_follower) struct Scope {
    known: ExecutorSnapshots,
    /// Changes that aren't written yet: the newest of each executor.
    changed: BTreeMap<Change, ExecutorRecord>,
    /// The last full list, until it is compared with the rows, and the number of lists so far.
    listed: Option<HashSet<ExecutorKey>>,
    lists: u64,
    /// Executors that, by their rows, have not ended and that the last full list didn't contain.
    missing: BTreeMap<ExecutorKey, LiveExecutor>,
}

impl Scope {
    pub(in crate::pod_follower) fn note(&mut self, observed: &ExecutorObservation) {
        if let Some(now) = self.known.take(observed) {
            self.change(now);
        }
    }

    pub(in crate::pod_follower) fn listed(&mut self, listed: HashSet<ExecutorKey>) {
        self.known.listed(&listed);
        self.missing.retain(|key, _| !listed.contains(key));
        self.listed = Some(listed);
        self.lists += 1;
    }

    /// Stores a change. An observed end isn't overwritten while it waits to be written.
    fn change(&mut self, now: ExecutorRecord) {
        let key = change_of(&now);
        if self.changed.get(&key).is_none_or(|before| before.state.may_become(now.state)) {
            self.changed.insert(key, now);
        }
    }

    pub(in crate::pod_follower) fn changes(&self) -> usize {
        self.changed.len()
    }

    /// Returns up to `limit` changes after `last`; they remain until `written` is called for them.
    pub(in crate::pod_follower) fn batch(&self, last: Option<&Change>, limit: usize) -> Vec<ExecutorRecord> {
        let from = last.map_or(Bound::Unbounded, Bound::Excluded);
        let behind = self.changed.range((from, Bound::Unbounded));
        behind.map(|(_, record)| record.clone()).take(limit).collect()
    }

    pub(in crate::pod_follower) fn written(&mut self, batch: &[ExecutorRecord]) {
        for record in batch {
            let key = change_of(record);
            if self.changed.get(&key) == Some(record) {
                self.changed.remove(&key);
            }
        }
    }

    /// Returns the number of the full list that has to be compared with the rows, if there is one.
    pub(in crate::pod_follower) fn to_be_compared(&self) -> Option<u64> {
        self.listed.as_ref().map(|_| self.lists)
    }

    /// Compares the full list of that number with the rows that have not ended.
    pub(in crate::pod_follower) fn compare(&mut self, list: u64, live: Vec<LiveExecutor>) {
        if list != self.lists {
            return;
        }
        let Some(listed) = self.listed.take() else { return };
        let missing = live.into_iter().filter(|executor| !listed.contains(&executor.key));
        self.missing = missing.map(|executor| (executor.key.clone(), executor)).collect();
    }

    /// Returns up to `limit` executors whose pods have to be looked up; they remain until `looked_for` is called for them.
    pub(in crate::pod_follower) fn missing(&self, limit: usize) -> Vec<LiveExecutor> {
        self.missing.values().take(limit).cloned().collect()
    }

    /// Records a look-up. `there`: the pod exists, or can't be looked up.
    pub(in crate::pod_follower) fn looked_for(&mut self, executor: &LiveExecutor, there: bool) {
        if self.missing.remove(&executor.key).is_some() && !there {
            let LiveExecutor { key, pod_name, pod_uid, .. } = executor.clone();
            self.change(ExecutorRecord::vanished(key, pod_name, pod_uid));
        }
    }
}

pub(in crate::pod_follower) fn change_of(record: &ExecutorRecord) -> Change {
    (record.key(), record.driver_uid.clone())
}

#[cfg(test)]
mod tests;
