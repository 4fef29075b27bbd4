//! A submission and its life, pure: ids, states, transitions, observations.

pub mod engine;
mod executor;
mod id;
mod kept;
mod observation;
mod outcome;
mod pod_event;
mod progress;
mod state;
mod transition;

pub use executor::{
    ExecutorKey, ExecutorObservation, ExecutorRecord, ExecutorSnapshots, ExecutorState, UnknownExecutorState,
};
pub use id::{InvalidSubmissionId, SubmissionId};
pub use kept::kept;
pub use observation::{Container, Observation, Phase};
pub use outcome::Outcome;
pub use pod_event::PodEvent;
pub use progress::{Placement, Progress};
pub use state::{DriverState, State, UnknownState};
pub use transition::{Step, step};
