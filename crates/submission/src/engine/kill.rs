//! Carries out a kill.

use super::{
    Job, Machine,
    effect::{Effect, EffectResult, Found, Settled},
};
use crate::{
    observation::PodObservation,
    outcome::Outcome,
    state::State,
    state_change::StateChange,
    transition::{Transition, transition},
};

/// Deletes the driver pod of a claimed submission, or records the end if there is no pod. Usually the watch observes the end of
/// the deleted pod; the kill is retried until the end is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kill {
    job: Job,
    effect: Effect,
    /// The uid of the pod, if our finalizer is on it.
    held: Option<String>,
    /// The pod owns the objects that were created before it, so they are deleted with it.
    handed_over: bool,
    /// This machine deleted the pod.
    deleted: bool,
}

impl Kill {
    pub fn begin(job: Job) -> Self {
        Self { job, effect: Effect::LookUp, held: None, handed_over: false, deleted: false }
    }

    fn next(&mut self, answer: EffectResult) -> Effect {
        match (&self.effect, answer) {
            (_, EffectResult::Unknown(why)) => Effect::Settle(Settled::TryAgain(why)),
            (_, EffectResult::Denied(why)) => Effect::Settle(Settled::Denied(why)),
            (_, EffectResult::Postponed(obstacle, why)) => Effect::Settle(Settled::Postponed(obstacle, why)),
            (Effect::LookUp, EffectResult::Found(Found::There(observed))) if self.job.owns(&observed) => {
                self.found(&observed)
            }
            // An object that doesn't exist can't be left behind.
            (Effect::HandOver(done, uid), EffectResult::Done | EffectResult::Refused { .. }) => {
                self.hand_over(done + 1, uid.clone())
            }
            // No pod of ours exists, and while this process holds the claim no other creates one.
            (Effect::LookUp, EffectResult::Found(_)) => self.without_pod(0),
            // An object that can't be deleted may never have been created; the submission ends anyway.
            (Effect::DeleteBefore(done), EffectResult::Done | EffectResult::Refused { .. }) => {
                self.without_pod(done + 1)
            }
            // A pod without a node is deleted immediately, except for our finalizer: another look-up lets the kill end now.
            (Effect::Delete(_), EffectResult::Done) => {
                self.deleted = true;
                Effect::LookUp
            }
            (Effect::Advance(StateChange::Ended(_), _), EffectResult::Moved(true)) => match &self.held {
                Some(uid) => Effect::RemoveFinalizer(uid.clone()),
                None => Effect::done(),
            },
            (Effect::RemoveFinalizer(_), EffectResult::Refused { message, .. }) => {
                Effect::Settle(Settled::GivenUp(message))
            }
            (_, EffectResult::Refused { message, .. }) => Effect::Settle(Settled::TryAgain(message)),
            _ => Effect::done(),
        }
    }

    fn hand_over(&mut self, next: usize, uid: String) -> Effect {
        if next < self.job.before {
            return Effect::HandOver(next, uid);
        }
        self.handed_over = true;
        Effect::LookUp
    }

    fn found(&mut self, observed: &PodObservation) -> Effect {
        if self.job.before > 0 && !self.handed_over {
            return self.hand_over(0, observed.pod_uid.clone());
        }
        match transition(State::Killing, &self.job.kill, observed) {
            // The driver may have ended before the kill reached it: a finished pod is kept, with its log.
            Transition::Ended(outcome) => {
                self.held = Some(observed.pod_uid.clone()).filter(|_| observed.holds_finalizer);
                Effect::Advance(StateChange::Ended(outcome), observed.placement())
            }
            _ if self.deleted || observed.deleting => Effect::Settle(Settled::LookAgain),
            _ => Effect::Delete(observed.pod_uid.clone()),
        }
    }

    fn without_pod(&self, next: usize) -> Effect {
        if next < self.job.before {
            return Effect::DeleteBefore(next);
        }
        Effect::end(Outcome::killed(&self.job.kill))
    }
}

impl Machine for Kill {
    fn effect(&self) -> &Effect {
        &self.effect
    }

    fn take_result(&mut self, answer: EffectResult) {
        self.effect = self.next(answer);
    }
}
