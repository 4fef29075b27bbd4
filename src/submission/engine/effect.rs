//! What machines ask for and what they are told.

use crate::submission::{KillCause, Observation, Outcome, Placement, Progress, State};

/// One look or one write. Objects are named by their place in the submission's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Read the row.
    Read,
    /// Read the pod under the driver's name, from the API server itself and not from a cache.
    LookUp,
    /// Create an object that the pod can't be scheduled without.
    CreateBefore(usize),
    CreatePod,
    /// Keep the uid of the pod that was made: from then on no other is made for the attempt.
    RecordPod(String),
    /// Make the pod the owner of an object that was made before it.
    HandOver(usize, String),
    /// Create an object that the pod owns.
    CreateBeside(usize, String),
    /// Delete an object that was made for a pod that there will never be.
    DeleteBefore(usize),
    /// Delete exactly the pod of this uid.
    Delete(String),
    /// Take our finalizer from exactly the pod of this uid.
    LetGo(String),
    /// Put the labels by which a pod is watched back on exactly the pod of this uid.
    RestoreLabels(String),
    /// Move the row forwards, unless it is there or beyond.
    Advance(Progress, Placement),
    /// Note why a driver that hasn't started still waits.
    NoteWaiting {
        reason: String,
        message: String,
    },
    /// Nothing more to do just now.
    Settle(Settled),
}

impl Effect {
    /// Whether it changes something in the cluster: whoever isn't sure to hold the claim leaves it.
    pub fn writes_to_the_cluster(&self) -> bool {
        match self {
            Self::CreateBefore(_)
            | Self::CreatePod
            | Self::HandOver(..)
            | Self::CreateBeside(..)
            | Self::DeleteBefore(_)
            | Self::Delete(_)
            | Self::LetGo(_)
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

/// How a piece of work ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settled {
    /// Nothing is left to do.
    Done,
    /// The same, and the last write gave the claim back.
    GivenBack,
    /// To be looked at again in a while.
    LookAgain,
    /// An answer is missing: the same again, later, under the same names.
    TryAgain(String),
    /// The API server denies it for a reason outside the request, such as a missing right: the same again, later.
    Denied(String),
    /// The API server said no to something that has to be: an operator has to look.
    GivenUp(String),
}

/// What became of an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is so now, whether by this call or by an earlier one.
    Done,
    /// [`Effect::CreatePod`]: the uid of the pod.
    Created(String),
    /// [`Effect::CreatePod`]: the name is taken.
    Taken(String),
    /// [`Effect::LookUp`].
    Found(Found),
    /// [`Effect::Read`].
    Row(Option<Row>),
    /// A guarded write found the row as it had to be, and changed it; or it didn't, and changed nothing.
    Moved(bool),
    /// The API server understood and said no.
    Refused { reason: String, message: String },
    /// The API server denied it and did nothing, for a reason that may pass.
    Denied(String),
    /// No answer: it may have taken effect or not.
    Unknown(String),
}

/// The pod under a driver's name, whatever made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    There(Box<Observation>),
    Nothing,
}

/// A row, as far as it decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub state: State,
    pub attempt: i32,
    pub pod_uid: Option<String>,
    /// Why it is being killed, if it is.
    pub kill: KillCause,
}

impl Effect {
    pub(super) fn end(outcome: Outcome) -> Self {
        Self::Advance(Progress::Ended(outcome), Placement::default())
    }

    pub(super) fn done() -> Self {
        Self::Settle(Settled::Done)
    }
}
