//! What the cluster shows of a driver pod, in the few words that decide.

use chrono::{DateTime, Utc};

use super::{Placement, SubmissionId};

/// One look at the driver pod of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub submission: SubmissionId,
    pub attempt: i32,
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    pub pod_uid: String,
    /// The pod carries the identity of this attempt, signed by this installation: it was created by it. Labels alone prove
    /// nothing, and an identity can be removed: once its uid is recorded, the uid decides.
    pub genuine: bool,
    /// The pod has the labels by which it is watched.
    pub labelled: bool,
    pub phase: Phase,
    /// `metadata.deletionTimestamp` is set: somebody deleted the pod before its driver was over. It may still run out its
    /// grace period.
    pub deleting: bool,
    /// It is being deleted without a grace period, so nobody will report on it any more: it was deleted by force, or had
    /// no node yet. Only a finalizer still holds it.
    pub forced: bool,
    /// When the pod was asked to go, in whole seconds of the API server's clock. Not known of a pod that isn't deleted.
    pub asked_to_go_at: Option<DateTime<Utc>>,
    /// Our finalizer is on the pod.
    pub holds_finalizer: bool,
    /// The pod is not there any more; the rest is what was last seen of it.
    pub gone: bool,
    pub node: Option<String>,
    pub pod_ip: Option<String>,
    /// Why the cluster itself ends the pod (`Evicted`, `PreemptionByScheduler`, `DeletionByPodGC`, …), and its words. A pod
    /// that is deleted without one was deleted by somebody.
    pub reason: Option<String>,
    pub message: Option<String>,
    pub container: Container,
}

impl Observation {
    /// Whether the driver may still do something, if nobody stops it.
    pub fn is_alive(&self) -> bool {
        let ended = matches!(self.container, Container::Terminated { .. });
        matches!(self.phase, Phase::Pending | Phase::Running) && !self.gone && !self.deleting && !ended
    }

    /// Whether the pod left the watch and nothing tells how the driver ended. It may have been deleted, or it may still run
    /// and only lack the label by which it was watched: a watch reports both in the same way.
    pub fn left_unexplained(&self) -> bool {
        let ended = matches!(self.container, Container::Terminated { .. });
        self.gone && !ended && !matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Whether the driver's container had ended before anybody deleted the pod. Both times are cut to whole seconds, so an
    /// end in an earlier second came earlier. They are of two clocks, though: an exit code that a signal leaves belongs to
    /// the deletion.
    pub fn ended_by_itself(&self) -> bool {
        let Container::Terminated { exit_code, reason, finished_at, .. } = &self.container else { return false };
        let by_signal = matches!(exit_code, 137 | 143) && reason.as_deref() != Some("OOMKilled");
        !by_signal
            && matches!((finished_at, self.asked_to_go_at), (Some(end), Some(asked)) if end.timestamp() < asked.timestamp())
    }

    /// Where the driver runs, as far as this look tells.
    pub fn placement(&self) -> Placement {
        let started_at = match &self.container {
            Container::Running { started_at } | Container::Terminated { started_at, .. } => *started_at,
            Container::Absent | Container::Waiting { .. } => None,
        };
        Placement {
            pod_uid: Some(self.pod_uid.clone()).filter(|uid| !uid.is_empty()),
            node: self.node.clone(),
            pod_ip: self.pod_ip.clone(),
            started_at,
        }
    }
}

/// `status.phase` of a pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
    /// The node can't be reached: nothing follows from it.
    Unknown,
}

/// The state of the driver's container, found by its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Container {
    /// No status was written for it.
    #[default]
    Absent,
    Waiting {
        reason: Option<String>,
        message: Option<String>,
    },
    Running {
        started_at: Option<DateTime<Utc>>,
    },
    Terminated {
        exit_code: i32,
        reason: Option<String>,
        message: Option<String>,
        started_at: Option<DateTime<Utc>>,
        finished_at: Option<DateTime<Utc>>,
    },
}
