//! What a replica sees of a pod and of a row, in a few bytes, and as the engine expects it.

use chrono::{TimeZone, Utc};
use sparkgate_submission::{Container, KillCause, Phase, PodObservation, Reservation, State, SubmissionId, engine};

/// The uid of a pod; 0 stands for none.
pub(crate) type Uid = u8;

pub(crate) fn uid_text(uid: Uid) -> Option<String> {
    (uid != 0).then(|| uid.to_string())
}

/// # Panics
/// The engine invented a uid.
pub(crate) fn uid_number(text: Option<&str>) -> Uid {
    text.map_or(0, |text| text.parse().expect("a uid that the model allocated"))
}

/// The driver's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Body {
    Waiting,
    Running,
    /// With this exit code.
    Exited(u8),
    /// The cluster ended the pod, and no exit code is left.
    Evicted,
}

/// Whether the pod is being deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Deletion {
    No,
    /// The driver may still run.
    Graceful,
    /// Only a finalizer holds it.
    Forced,
}

/// A pod, as a watch or a look-up shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct View {
    pub(crate) uid: Uid,
    /// The attempt as whose pod it is seen.
    pub(crate) attempt: u8,
    pub(crate) genuine: bool,
    pub(crate) labelled: bool,
    pub(crate) finalizer: bool,
    pub(crate) deletion: Deletion,
    pub(crate) body: Body,
    pub(crate) gone: bool,
}

impl View {
    pub(crate) fn observation(self) -> PodObservation {
        let container = match self.body {
            Body::Waiting | Body::Evicted => Container::Absent,
            Body::Running => Container::Running { started_at: None },
            Body::Exited(code) => Container::Terminated {
                exit_code: code.into(),
                reason: None,
                message: None,
                started_at: None,
                finished_at: None,
            },
        };
        PodObservation {
            submission: id(),
            attempt: self.attempt.into(),
            namespace: String::new(),
            pod: pod_name(self.attempt),
            pod_uid: self.uid.to_string(),
            genuine: self.genuine,
            labelled: self.labelled,
            phase: match self.body {
                Body::Waiting => Phase::Pending,
                Body::Running => Phase::Running,
                Body::Exited(0) => Phase::Succeeded,
                Body::Exited(_) | Body::Evicted => Phase::Failed,
            },
            deleting: self.deletion != Deletion::No,
            forced: self.deletion == Deletion::Forced,
            asked_to_go_at: None,
            holds_finalizer: self.finalizer,
            gone: self.gone,
            node: None,
            pod_ip: None,
            reason: (self.body == Body::Evicted).then(|| "Evicted".to_owned()),
            message: None,
            container,
            restarted_by: None,
            rerun: None,
            reservation: Reservation::default(),
        }
    }
}

/// The values of a row that the engine reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RowView {
    pub(crate) state: State,
    pub(crate) attempt: u8,
    /// The names of the attempt are stored.
    pub(crate) named: bool,
    pub(crate) uid: Uid,
}

impl RowView {
    pub(crate) fn row(self) -> engine::Row {
        engine::Row {
            state: self.state,
            attempt: self.attempt.into(),
            namespace: String::new(),
            pod: self.named.then(|| pod_name(self.attempt)),
            pod_uid: uid_text(self.uid),
            kill: KillCause::Request,
        }
    }
}

fn pod_name(attempt: u8) -> String {
    format!("driver-{attempt}")
}

fn id() -> SubmissionId {
    SubmissionId::new(Utc.timestamp_nanos(0), 1)
}
