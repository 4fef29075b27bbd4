//! Executors: observations of their pods, their meaning in Spark's terms, and the changes among them.

mod exit_code;
mod record;
mod snapshot;
mod state;

use chrono::{DateTime, Utc};

use super::{
    id::SubmissionId,
    observation::{Container, Phase},
    reservation::Reservation,
};

pub use record::ExecutorRecord;
pub use snapshot::ExecutorSnapshots;
pub use state::{ExecutorState, UnknownExecutorState};

/// One executor of one attempt: the submission, the number of the attempt, the executor's id (the label `spark-exec-id`).
pub type ExecutorKey = (SubmissionId, i32, i64);

/// One observation of an executor's pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorObservation {
    pub submission: SubmissionId,
    pub attempt: i32,
    /// The label `spark-exec-id`. Pods without a number there (`EXECID`, before the driver sets it) aren't executors.
    pub executor_id: i64,
    /// The uid of the pod that owns it: the driver that created it.
    pub driver_uid: String,
    pub pod_name: String,
    pub pod_uid: String,
    pub phase: Phase,
    /// `metadata.deletionTimestamp` is set.
    pub deleting: bool,
    /// The pod no longer exists; the other fields are those of the last observation.
    pub gone: bool,
    pub node: Option<String>,
    /// `status.reason` and `status.message`, as the kubelet sets them on an eviction.
    pub reason: Option<String>,
    pub message: Option<String>,
    /// Spark's container: `spark-kubernetes-executor`, or the one that a pod template names.
    pub container: Container,
    pub created_at: Option<DateTime<Utc>>,
    pub reservation: Reservation,
}

impl ExecutorObservation {
    pub fn key(&self) -> ExecutorKey {
        (self.submission.clone(), self.attempt, self.executor_id)
    }
}
