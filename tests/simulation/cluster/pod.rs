//! A pod: its object in the API server, and its state on the node.

use sparkgate::submission::{Container, Phase, PodObservation, SubmissionId};

use crate::store::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours {
        attempt: i32,
    },
    /// A pod created by others, with the labels of an attempt and without a signed identity.
    Forged {
        attempt: i32,
    },
    Foreign,
}

/// The status of the driver's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Absent,
    /// For example `ImagePullBackOff`.
    Stuck,
    Running,
    Exited(i32),
}

/// What the kubelet knows. It reports this with a delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Local {
    NotStarted,
    Running,
    Exited(i32),
    /// The node has failed, and its state is lost.
    Vanished,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Pod {
    pub(crate) uid: u64,
    /// The number of the attempt whose driver's name it has.
    pub(crate) name: usize,
    pub(crate) whose: Whose,
    pub(crate) finalizer: bool,
    /// `deletionTimestamp` is set, with this `deletionGracePeriodSeconds`.
    pub(crate) deletion: Option<u32>,
    pub(crate) bound: bool,
    pub(crate) phase: Phase,
    pub(crate) reason: Option<&'static str>,
    pub(crate) body: Body,
    pub(crate) local: Local,
    pub(crate) created_at: Time,
    /// It has the labels that are watched. (`signed`: it has its signed identity.)
    pub(crate) labelled: bool,
    pub(crate) signed: bool,
}

impl Pod {
    pub(super) fn new(uid: u64, name: usize, whose: Whose, finalizer: bool, now: Time) -> Self {
        Self {
            uid,
            name,
            whose,
            finalizer,
            deletion: None,
            bound: false,
            phase: Phase::Pending,
            reason: None,
            body: Body::Absent,
            local: Local::NotStarted,
            created_at: now,
            labelled: whose != Whose::Foreign,
            signed: matches!(whose, Whose::Ours { .. }),
        }
    }

    pub(crate) fn phase_is_final(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Returns the observation that a watch makes of the pod, if it has the watched labels.
    pub(crate) fn observation(&self, id: &SubmissionId, gone: bool) -> Option<PodObservation> {
        let (Whose::Ours { attempt } | Whose::Forged { attempt }) = self.whose else { return None };
        self.labelled.then(|| self.looked_up(id, attempt, gone))
    }

    /// Returns the observation when the pod is looked up as the driver of this attempt.
    pub(crate) fn looked_up(&self, id: &SubmissionId, of: i32, gone: bool) -> PodObservation {
        let named = match self.whose {
            Whose::Ours { attempt } | Whose::Forged { attempt } => attempt == of,
            Whose::Foreign => false,
        };
        let container = match self.body {
            Body::Absent => Container::Absent,
            Body::Stuck => Container::Waiting { reason: Some("ImagePullBackOff".to_owned()), message: None },
            Body::Running => Container::Running { started_at: None },
            Body::Exited(exit_code) => {
                Container::Terminated { exit_code, reason: None, message: None, started_at: None, finished_at: None }
            }
        };
        PodObservation {
            submission: id.clone(),
            attempt: of,
            genuine: self.signed && named,
            labelled: self.labelled && named,
            namespace: String::new(),
            pod: String::new(),
            pod_uid: uid_text(self.uid),
            phase: self.phase,
            deleting: self.deletion.is_some(),
            forced: self.deletion == Some(0),
            asked_to_go_at: None,
            holds_finalizer: self.finalizer,
            gone,
            node: None,
            pod_ip: None,
            reason: self.reason.map(str::to_owned),
            message: None,
            container,
        }
    }
}

pub(crate) fn uid_text(uid: u64) -> String {
    uid.to_string()
}

/// # Panics
/// The engine invented a uid.
pub(crate) fn uid_number(text: &str) -> u64 {
    text.parse().expect("a uid that this cluster allocated")
}
