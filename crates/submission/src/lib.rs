//! The life cycle of a submission, without I/O: ids, states, transitions, observations.

mod duration;
pub mod engine;
mod error_chain;
mod executor;
mod failure;
mod id;
mod installation;
mod kept;
mod kill_cause;
mod late;
mod observation;
mod outcome;
mod pod_event;
pub mod queues;
mod reservation;
mod state;
mod state_change;
mod transition;
mod wire;

pub use duration::{LONGEST_DURATION, parse_duration};
pub use error_chain::error_chain;
pub use executor::{
    ExecutorKey, ExecutorObservation, ExecutorRecord, ExecutorSnapshots, ExecutorState, UnknownExecutorState,
};
pub use failure::{
    EVICTED_BY_KUEUE, FailureClass, FailureCode, MEMORY_MAX, MessageIs, OwnOutput, RULES as FAILURE_RULES, ReasonIs,
    RetryKind, Rule as FailureRule, advice, cause, headline, headline_of_row, last_own_line, own_end, signal,
};
pub use id::{InvalidSubmissionId, SubmissionId};
pub use installation::{DerivedKey, Installation, SigningKey};
pub use kept::kept;
pub use kill_cause::{KillCause, UnknownKillCause};
pub use late::LATE;
pub use observation::{Container, Phase, PodObservation, Rerun};
pub use outcome::Outcome;
pub use pod_event::PodEvent;
pub use reservation::Reservation;
pub use state::{DriverState, State, UnknownState};
pub use state_change::{Placement, StateChange};
pub use transition::{Transition, transition};
pub use wire::{UnknownWire, Wire};
