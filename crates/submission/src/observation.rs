//! Observations of a driver pod, reduced to what decisions depend on.

use chrono::{DateTime, Utc};

use super::{id::SubmissionId, reservation::Reservation, state_change::Placement};

/// One observation of an attempt's driver pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodObservation {
    pub submission: SubmissionId,
    pub attempt: i32,
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    pub pod_uid: String,
    /// The pod carries this attempt's identity, signed by this installation, so this installation created it. Labels alone
    /// prove nothing, and an identity can be removed: once the uid is recorded, the uid decides.
    pub genuine: bool,
    /// The pod has the labels that the watch selects by.
    pub labelled: bool,
    pub phase: Phase,
    /// `metadata.deletionTimestamp` is set: the pod was deleted before its driver ended. The driver may still run during its
    /// grace period.
    pub deleting: bool,
    /// The pod is being deleted without a grace period, by force or because it had no node yet, so no kubelet will report on it
    /// any more. Only a finalizer still holds it.
    pub forced: bool,
    /// When the pod was asked to terminate, in whole seconds of the API server's clock. Unknown for a pod that isn't deleted.
    pub asked_to_go_at: Option<DateTime<Utc>>,
    /// Our finalizer is on the pod.
    pub holds_finalizer: bool,
    /// The pod no longer exists; the other fields are those of the last observation.
    pub gone: bool,
    pub node: Option<String>,
    pub pod_ip: Option<String>,
    /// Why the cluster itself ends the pod (`Evicted`, `PreemptionByScheduler`, `DeletionByPodGC`, …), and its message. If a
    /// deleted pod has none, a client deleted it.
    pub reason: Option<String>,
    pub message: Option<String>,
    /// If the kubelet has started the driver's container again: how the run before ended.
    pub container: Container,
    /// The field of the pod by which its kubelet may start the driver's container again after an end, such as
    /// `spec.containers[0].restartPolicy`. No pod has one as the gateway creates it.
    pub restarted_by: Option<String>,
    /// The kubelet has started the driver's container again, whatever the pod's fields say.
    pub rerun: Option<Rerun>,
    pub reservation: Reservation,
}

/// A run of the driver's container after the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rerun {
    /// It runs, or is about to.
    Live,
    Over,
}

impl PodObservation {
    /// Returns whether the driver may still run, and is not being stopped.
    pub fn is_alive(&self) -> bool {
        let ended = self.has_ended() && !self.may_run_again();
        matches!(self.phase, Phase::Pending | Phase::Running) && !self.gone && !self.deleting && !ended
    }

    /// Returns whether the driver has ended, and its kubelet doesn't start it again.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed) || (self.has_ended() && !self.may_run_again())
    }

    fn has_ended(&self) -> bool {
        matches!(self.container, Container::Terminated { .. })
    }

    /// Returns whether the driver has ended and runs again, or may do so unless its pod is deleted. A kubelet starts no container
    /// of a pod that has ended or is being deleted.
    pub fn may_run_again(&self) -> bool {
        let is_over = self.gone || self.forced || matches!(self.phase, Phase::Succeeded | Phase::Failed);
        let restarts = match self.rerun {
            Some(Rerun::Live) => true,
            Some(Rerun::Over) | None => self.restarted_by.is_some() && !self.deleting,
        };
        self.has_ended() && restarts && !is_over
    }

    /// Returns whether the driver container has started. All objects of the driver existed then: the last one that is created is
    /// the `ConfigMap` without which the container can't start.
    pub fn has_started(&self) -> bool {
        matches!(self.container, Container::Running { .. } | Container::Terminated { .. })
    }

    /// Returns whether the pod left the watch and the end of the driver is unknown. The pod may have been deleted, or it may
    /// still run and only lack the label that the watch selects by: a watch reports both in the same way.
    pub fn left_unexplained(&self) -> bool {
        let ended = self.has_ended() && self.restarted_by.is_none() && self.rerun.is_none();
        self.gone && !ended && !matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Returns whether the driver's container had ended before the pod was deleted. Both times are truncated to whole seconds,
    /// so an end in an earlier second came first. The times come from two clocks, though: an exit code that stands for a signal
    /// is attributed to the deletion.
    pub fn ended_by_itself(&self) -> bool {
        let Container::Terminated { exit_code, reason, finished_at, .. } = &self.container else { return false };
        // It was started again, which a kubelet does only before the deletion.
        if self.rerun.is_some() {
            return true;
        }
        let by_signal = matches!(exit_code, 137 | 143) && reason.as_deref() != Some("OOMKilled");
        // The gateway deletes a pod whose driver might start again, right after its end.
        if !by_signal && self.restarted_by.is_some() {
            return true;
        }
        !by_signal
            && matches!((finished_at, self.asked_to_go_at), (Some(end), Some(asked)) if end.timestamp() < asked.timestamp())
    }

    /// Returns whether the node reports an end of the driver's container and no start.
    pub fn never_started(&self) -> bool {
        matches!(self.container, Container::Terminated { started_at: None, .. })
    }

    /// Returns where the driver runs, as far as this observation says.
    pub fn placement(&self) -> Placement {
        let (started_at, ended_at) = match &self.container {
            Container::Running { started_at } => (*started_at, None),
            Container::Terminated { started_at, finished_at, .. } => (*started_at, *finished_at),
            Container::Absent | Container::Waiting { .. } => (None, None),
        };
        Placement {
            pod_uid: Some(self.pod_uid.clone()).filter(|uid| !uid.is_empty()),
            node: self.node.clone(),
            pod_ip: self.pod_ip.clone(),
            started_at,
            ended_at,
            reservation: Some(self.reservation),
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
    /// The node can't be reached: nothing can be concluded.
    Unknown,
}

/// The state of the driver's container, found by its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Container {
    /// The pod has no status for it.
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
