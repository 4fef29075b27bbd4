//! The engine: what is done for a submission, as state machines without any input or output of their own.
//!
//! A machine asks for one [`Effect`] at a time: one look, or one write, at the database or at the cluster. Whoever runs it
//! carries the effect out and tells the [`Answer`]; the machine then asks for the next, until it says [`Effect::Settle`].
//! A process may die between any two effects, and an answer may get lost: all three machines can be begun anew at any
//! time, by anyone, and come to the same end. `tests/simulation` checks that over millions of histories.

mod effect;
mod follow;
mod kill;
mod launch;

pub use effect::{Answer, Effect, Found, Row, Settled};
pub use follow::Follow;
pub use kill::Kill;
pub use launch::Launch;

use super::{KillCause, Observation, Outcome, State};

/// A state machine.
pub trait Machine {
    /// What to do now. The same until [`Machine::answer`] was called.
    fn effect(&self) -> &Effect;

    /// Takes what became of [`Machine::effect`] and moves on.
    fn answer(&mut self, answer: Answer);
}

/// The claimed work on a submission whose objects may be half-made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Job {
    /// The driver pod that an earlier try made and recorded: no other is ever made for this attempt.
    pub pod_uid: Option<String>,
    /// Its pod is created with a signed identity. The release before rendered pods without one.
    pub signed: bool,
    /// How many objects have to be there before the pod, and how many follow it.
    pub before: usize,
    pub beside: usize,
    /// Why it is killed, if it is.
    pub kill: KillCause,
}

impl Job {
    /// Whether this pod is the attempt's. Until its uid is recorded only its signed identity proves it: a pod of the same
    /// name and labels can be made by others, also beforehand.
    fn owns(&self, seen: &Observation) -> bool {
        match &self.pod_uid {
            Some(uid) => *uid == seen.pod_uid,
            None => seen.genuine || (!self.signed && seen.labelled),
        }
    }
}

/// The cluster said no, and repeating can't help.
fn error(reason: String, message: String) -> Outcome {
    Outcome::new(State::Error, &reason, message)
}

#[cfg(test)]
mod tests;
