//! What a watch reports.

use std::collections::HashSet;

use sparkgate_submission::{ExecutorKey, ExecutorObservation, PodObservation, SubmissionId};

/// One driver pod: its submission, attempt and uid.
pub type PodKey = (SubmissionId, i32, String);

/// What the watch reports.
#[derive(Debug, PartialEq)]
pub enum WatchReport {
    /// A driver pod as it is now, or its last state before it was removed.
    Driver(Box<PodObservation>),
    /// An executor pod as it is now, or its last state before it was removed.
    Executor(Box<ExecutorObservation>),
    /// A full list is complete (at start, after every gap and every ten minutes): these pods existed when it was made.
    Listed { drivers: HashSet<PodKey>, executors: HashSet<ExecutorKey> },
    /// Listing or watching fails at the moment and is retried with a growing back-off. The next item of any other kind means
    /// that it works again.
    Broken { reason: String },
}

/// One item of the watch, and the position from which a watch can resume after it.
#[derive(Debug, PartialEq)]
pub struct WatchItem {
    pub report: Option<WatchReport>,
    /// A caller that has processed this item and all items before it can resume from this version.
    pub resource_version: Option<String>,
}
