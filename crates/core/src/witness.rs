//! The witness of drivers: what outlives a pod. The core asks it before it lets a pod go, and never knows where it keeps logs.

use futures::future::BoxFuture;

use sparkgate_cluster::{LogOf, WatchReport};
use sparkgate_common::error::Error;
use sparkgate_store::KeptLog;
use sparkgate_submission::{Outcome, PodEvent, SubmissionId};

/// What is known of an ended driver from its archive.
#[derive(Debug, Default)]
pub struct Archived {
    /// The relevant events of its pod, as they were at its end.
    pub events: Vec<PodEvent>,
    /// The end of what the application wrote; `None` if nothing was archived or written.
    pub tail: Option<String>,
    /// The exception that ended it, if its log has one.
    pub cause: Option<String>,
}

/// Keeps what a driver leaves behind: the end of its log, the events of its pod. All of it is evidence for people, and no state
/// depends on it: a failure to keep it delays a driver for seconds, and is only logged.
pub trait Witness: Send + Sync {
    /// A watch of this scope (`None`: all namespaces) starts. It ends when the guard is dropped.
    fn begin<'a>(&'a self, scope: Option<&str>) -> Box<dyn Send + 'a>;

    /// Observes what the watch of a scope reports.
    fn observe(&self, scope: Option<&str>, report: &WatchReport);

    /// Archives log and events of a driver that failed, before its outcome is recorded, and returns the cause of the failure.
    /// Returns `None` if the log has none, or if that takes too long or fails.
    fn cause<'a>(
        &'a self,
        outcome: &'a Outcome,
        id: &'a SubmissionId,
        attempt: i32,
        of: &'a LogOf<'a>,
    ) -> BoxFuture<'a, Option<String>>;

    /// Archives the log and the events of an ended driver, once.
    fn archive<'a>(&'a self, id: &'a SubmissionId, attempt: i32, of: &'a LogOf<'a>) -> BoxFuture<'a, ()>;

    /// Reads an archive that the database returned.
    fn read(&self, kept: KeptLog) -> Archived;

    /// Returns what was archived of an ended driver.
    ///
    /// # Errors
    /// The database doesn't answer.
    fn archived<'a>(&'a self, id: &'a SubmissionId, attempt: i32) -> BoxFuture<'a, Result<Archived, Error>>;

    /// Returns the current events of the driver pod of a submission that waits, or none if the cluster doesn't answer within a
    /// second.
    fn pod_events<'a>(&'a self, id: &'a SubmissionId, namespace: &'a str, uid: &'a str)
    -> BoxFuture<'a, Vec<PodEvent>>;
}
