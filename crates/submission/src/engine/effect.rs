//! The effects that machines request, and their answers.

use crate::{
    kill_cause::KillCause,
    observation::PodObservation,
    outcome::Outcome,
    state::State,
    state_change::{Placement, StateChange},
};

/// One read or one write. Objects are identified by their position in the submission's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Read the row.
    Read,
    /// Read the pod with the driver's name, from the API server itself and not from a cache.
    LookUp,
    /// Create an object without which the pod can't be scheduled.
    CreateBefore(usize),
    CreatePod,
    /// Record the uid of the created pod: from then on, no other is created for the attempt.
    RecordPod(String),
    /// Make the pod the owner of an object that was created before it.
    HandOver(usize, String),
    /// Create an object that the pod owns.
    CreateBeside(usize, Driver),
    /// Delete an object that was created for a pod that will never exist.
    DeleteBefore(usize),
    /// Delete exactly the pod of this uid.
    Delete(String),
    /// Remove our finalizer from exactly the pod of this uid.
    RemoveFinalizer(String),
    /// Restore what marks the pod of this uid as ours: the labels that the watch selects by, and its annotations; under a claim
    /// also our finalizer.
    RestoreLabels(String),
    /// Move the row forwards, unless it is in that state or beyond.
    Advance(StateChange, Placement),
    /// Record why a driver that hasn't started still waits.
    NoteWaiting {
        reason: String,
        message: String,
    },
    /// Nothing more to do for now.
    Settle(Settled),
}

impl Effect {
    /// Returns whether the effect changes the cluster. Work under a claim carries it out only while the claim is certainly held.
    pub fn writes_to_the_cluster(&self) -> bool {
        match self {
            Self::CreateBefore(_)
            | Self::CreatePod
            | Self::HandOver(..)
            | Self::CreateBeside(..)
            | Self::DeleteBefore(_)
            | Self::Delete(_)
            | Self::RemoveFinalizer(_)
            | Self::RestoreLabels(_) => true,
            Self::Read
            | Self::LookUp
            | Self::RecordPod(_)
            | Self::Advance(..)
            | Self::NoteWaiting { .. }
            | Self::Settle(_) => false,
        }
    }
}

/// The pod that owns an object which is to be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Driver {
    pub uid: String,
    /// An earlier try created the pod, and perhaps the object.
    pub is_older: bool,
}

/// What the API server refused a request for, if it isn't the request: the same request may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// A quota of the namespace has no room at the moment.
    Quota,
    /// A webhook denies it for now.
    Webhook,
    /// The namespace doesn't exist.
    Namespace,
}

impl Obstacle {
    /// Returns the reason of a submission that waits for it to pass, in one word.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Quota => "QuotaExceeded",
            Self::Webhook => "NotNow",
            Self::Namespace => "NamespaceNotFound",
        }
    }
}

/// The result of a piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// Nothing is left to do.
    Done,
    /// Nothing is left to do, and the last write returned the claim.
    GivenBack,
    /// Has to be checked again later.
    LookAgain,
    /// An answer is missing: repeat the same later, with the same names.
    TryAgain(String),
    /// The API server denies it for a reason outside of the request, such as a missing right: repeat the same later.
    Denied(String),
    /// The API server refused it for something that may pass: repeat the same later.
    Postponed(Obstacle, String),
    /// The API server refused a necessary write: an operator has to intervene.
    GivenUp(String),
}

/// The result of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectResult {
    /// The effect holds, by this call or an earlier one.
    Done,
    /// [`Effect::CreatePod`]: the pod as it was created, which may differ from the one that was sent.
    Created(Box<PodObservation>),
    /// [`Effect::CreatePod`]: the name is taken.
    Taken(String),
    /// [`Effect::LookUp`].
    Found(Found),
    /// [`Effect::Read`].
    Row(Option<Row>),
    /// [`Effect::RecordPod`]: the state of the row; `None` if the claim is lost, or another pod is recorded. Also of an
    /// [`Effect::Read`] that follows a moment later.
    Recorded(Option<State>),
    /// A guarded write found the expected row and changed it; or it didn't, and changed nothing.
    Moved(bool),
    /// The API server understood the request and refused it.
    Refused { reason: String, message: String },
    /// The API server denied the request and did nothing, for a reason that may pass.
    Denied(String),
    /// The API server refused the request and did nothing, for the sake of something that may pass.
    Postponed(Obstacle, String),
    /// No answer: the request may have taken effect.
    Unknown(String),
}

/// The pod with the driver's name, independent of its creator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    There(Box<PodObservation>),
    Nothing,
}

/// The values of a row that decisions depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub state: State,
    pub attempt: i32,
    pub namespace: String,
    /// The name of the attempt's pod. `None` if it isn't stored yet: the launch of a later attempt stores it.
    pub pod: Option<String>,
    pub pod_uid: Option<String>,
    /// The cause, if the submission is being killed.
    pub kill: KillCause,
}

impl Effect {
    pub(super) fn end(outcome: Outcome) -> Self {
        Self::Advance(StateChange::Ended(outcome), Placement::default())
    }

    pub(super) fn done() -> Self {
        Self::Settle(Settled::Done)
    }
}
