//! A pod: its object in the API server, and its state on the node.

use sparkgate::submission::{Container, Phase, PodObservation, SubmissionId};

use crate::{names::attempt_of, store::Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours {
        attempt: i32,
    },
    /// A pod created by others, with the labels of an attempt.
    Forged {
        of: usize,
    },
    Foreign,
}

/// The status of the driver's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Body {
    Absent,
    /// No node has room for the pod.
    Unscheduled,
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
    /// A webhook has changed it at its creation: its kubelet starts the driver again after its end.
    pub(crate) restarts: bool,
    /// And its fields show that.
    pub(crate) shows_restarts: bool,
    pub(crate) created_at: Time,
    /// The attempt that its labels name, by its names; `None` without the labels that are watched.
    pub(crate) labels: Option<usize>,
    /// The pod for which the identity in its annotations was signed, by its name.
    pub(crate) identity: Option<usize>,
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
            restarts: false,
            shows_restarts: false,
            created_at: now,
            labels: match whose {
                Whose::Ours { .. } => Some(name),
                Whose::Forged { of } => Some(of),
                Whose::Foreign => None,
            },
            identity: matches!(whose, Whose::Ours { .. }).then_some(name),
        }
    }

    pub(crate) fn phase_is_final(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Returns whether it has the identity that was signed for it. A copy of another pod's identity is none.
    pub(crate) fn is_signed(&self) -> bool {
        self.identity == Some(self.name)
    }

    /// Returns the attempt as whose driver a watch shows the pod; `None` without the watched labels. The identity names the
    /// attempt; if it isn't valid, the labels do.
    pub(crate) fn shown_as(&self) -> Option<usize> {
        self.labels.map(|of| if self.is_signed() { self.name } else { of })
    }

    /// Returns the observation that a watch makes of the pod, if it has the watched labels. `ids` are those of all submissions.
    pub(crate) fn observation(&self, ids: impl Fn(usize) -> SubmissionId, gone: bool) -> Option<PodObservation> {
        let of = self.shown_as()?;
        Some(self.looked_up(&ids(of), of, gone))
    }

    /// Returns the observation when the pod is looked up as the driver of this attempt.
    pub(crate) fn looked_up(&self, id: &SubmissionId, of: usize, gone: bool) -> PodObservation {
        let container = match self.body {
            Body::Absent => Container::Absent,
            Body::Unscheduled => Container::Waiting { reason: Some("Unschedulable".to_owned()), message: None },
            Body::Stuck => Container::Waiting { reason: Some("ImagePullBackOff".to_owned()), message: None },
            Body::Running => Container::Running { started_at: None },
            Body::Exited(exit_code) => {
                Container::Terminated { exit_code, reason: None, message: None, started_at: None, finished_at: None }
            }
        };
        PodObservation {
            submission: id.clone(),
            attempt: attempt_of(of),
            genuine: self.is_signed() && self.name == of,
            labelled: self.labels == Some(of),
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
            restarted_by: self.shows_restarts.then(|| "spec.containers[0].restartPolicy".to_owned()),
            rerun: None,
            reservation: Default::default(),
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
