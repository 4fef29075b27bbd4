//! Folds the observations of executors, and returns only changes.

use std::collections::{HashMap, HashSet};

use super::{ExecutorKey, ExecutorObservation, record::ExecutorRecord};
use crate::id::SubmissionId;

/// The known executors whose pods a watch has shown. It contains only pods that exist, so it grows no larger than the cluster.
#[derive(Debug, Default)]
pub struct ExecutorSnapshots {
    /// For each driver pod that owns executors, by executor id: a pod with the labels of an attempt but another owner doesn't
    /// hide the attempt's own.
    known: HashMap<(SubmissionId, i32, String), HashMap<i64, Known>>,
}

#[derive(Debug)]
enum Known {
    Live(Box<ExecutorRecord>),
    /// The executor ended; its pod still exists, and later observations of it don't matter.
    Ended,
}

impl ExecutorSnapshots {
    /// Takes in one observation of a pod. Returns the executor if it has changed.
    pub fn take(&mut self, observed: &ExecutorObservation) -> Option<ExecutorRecord> {
        let attempt = (observed.submission.clone(), observed.attempt, observed.driver_uid.clone());
        let executors = self.known.entry(attempt.clone()).or_default();
        let changed = changed(executors.get(&observed.executor_id), observed);
        if observed.gone {
            executors.remove(&observed.executor_id);
            if executors.is_empty() {
                self.known.remove(&attempt);
            }
        } else if let Some(now) = &changed {
            executors.insert(observed.executor_id, Known::of(now));
        }
        changed
    }

    /// Takes in a full list, and forgets the executors that are not in it. If one is newer than the list, it is observed again,
    /// and counts as new.
    pub fn listed(&mut self, listed: &HashSet<ExecutorKey>) {
        self.known.retain(|(submission, attempt, _), executors| {
            executors.retain(|id, _| listed.contains(&(submission.clone(), *attempt, *id)));
            !executors.is_empty()
        });
    }
}

impl Known {
    fn of(now: &ExecutorRecord) -> Self {
        if now.state.is_final() { Self::Ended } else { Self::Live(Box::new(now.clone())) }
    }
}

/// Returns the executor if the observation changes what was known.
fn changed(before: Option<&Known>, observed: &ExecutorObservation) -> Option<ExecutorRecord> {
    let now = ExecutorRecord::from(observed);
    match before {
        None => Some(now),
        Some(Known::Ended) => None,
        Some(Known::Live(before)) => {
            // What a pod reserves is written with its next change: it is news only when the pod ends.
            let reservation = now.reservation;
            let now = ExecutorRecord {
                node: now.node.or_else(|| before.node.clone()),
                started_at: now.started_at.or(before.started_at),
                reservation: before.reservation,
                ..now
            };
            let is_news = before.state.may_become(now.state) && now != **before;
            is_news.then_some(ExecutorRecord { reservation, ..now })
        }
    }
}

#[cfg(test)]
mod tests;
