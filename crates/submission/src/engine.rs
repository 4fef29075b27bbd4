//! The engine: the work on a submission, as state machines without I/O.
//!
//! A machine requests one [`Effect`] at a time: one read or one write, in the database or in the cluster. The caller carries
//! the effect out and passes the [`EffectResult`]; the machine then requests the next effect, until [`Effect::Settle`]. A process may
//! crash between any two effects, and an answer may get lost: all three machines can be restarted at any time, by any replica,
//! and reach the same end. `tests/simulation` checks that over millions of histories.

mod effect;
mod follow;
mod kill;
mod launch;

pub use effect::{Driver, Effect, EffectResult, Found, Obstacle, Row, Settled};
pub use follow::Follow;
pub use kill::Kill;
pub use launch::Launch;

use super::{kill_cause::KillCause, observation::PodObservation, outcome::Outcome, state::State};

/// A state machine.
pub trait Machine {
    /// Returns the effect to carry out now. It doesn't change until [`Machine::take_result`] is called.
    fn effect(&self) -> &Effect;

    /// Takes the result of [`Machine::effect`] and moves on.
    fn take_result(&mut self, answer: EffectResult);
}

/// Claimed work on a submission whose objects may exist in part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// The driver pod that an earlier try created and recorded: no other is ever created for this attempt.
    pub pod_uid: Option<String>,
    /// The manifest of the pod has a signed identity. The previous release built pods without one.
    pub signed: bool,
    /// The manifest of the pod has our finalizer.
    pub held: bool,
    /// How many objects are created before the pod, and how many after it.
    pub before: usize,
    pub beside: usize,
    /// The cause, if the job is a kill.
    pub kill: KillCause,
}

impl Job {
    /// Returns whether this pod is the attempt's. Until its uid is recorded, only its signed identity proves it: other clients
    /// can create a pod with the same name and labels, also beforehand.
    fn owns(&self, observed: &PodObservation) -> bool {
        match &self.pod_uid {
            Some(uid) => *uid == observed.pod_uid,
            None => observed.genuine || (!self.signed && observed.labelled),
        }
    }
}

/// Returns the outcome of a submission that the cluster refused: repeating can't help.
fn error(reason: String, message: String) -> Outcome {
    Outcome::new(State::Error, &reason, message)
}

#[cfg(test)]
mod tests;
