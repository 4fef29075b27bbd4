//! Creates the driver of a claimed row in the cluster.

use super::{
    Job, Machine,
    effect::{Driver, Effect, EffectResult, Found, Settled},
    error,
};
use crate::{
    observation::PodObservation,
    outcome::Outcome,
    state::State,
    state_change::{Placement, StateChange},
    transition::{Transition, transition},
};

/// Makes sure that the driver pod and all its objects exist.
///
/// The pod's uid is recorded before any object that the pod owns is created, above all the `ConfigMap` without which the driver
/// can't start: a driver that may have run is a recorded one, and no other is ever created for its attempt. If the cluster
/// refuses an object, those created before are deleted, as with spark-submit.
///
/// What was created may differ from what was sent: other clients of the API server (mutating webhooks) change pods at their
/// creation. A pod whose driver could run twice is deleted before it can start; missing marks are restored before anything else.
/// And a kill may be accepted meanwhile: no object that lets the driver start is created after that is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    job: Job,
    effect: Effect,
    /// The uid of the pod, once it is known.
    pod: Option<String>,
    /// An earlier try created the pod.
    is_older: bool,
    /// The pod lacks marks of ours.
    is_unmarked: bool,
    /// Why its driver must not start.
    unfit: Option<Outcome>,
    /// Nothing was written to the cluster since the state of the row was read.
    is_checked: bool,
    /// The last object, while the state of the row is read before it is created.
    last: Option<(usize, String)>,
    /// The pod, if it was found with a driver that has started or ended: the watch may report it no more.
    adopted: Option<Box<PodObservation>>,
    /// The outcome, if the driver can't be created.
    refused: Option<Outcome>,
    /// The API server's message about the taken name.
    taken: String,
    /// The refusal of the pod, until it is known whether an earlier try created it.
    denied: Option<Box<EffectResult>>,
}

/// The `reason` of the API server's `Status` if an object doesn't exist.
const NOT_FOUND: &str = "NotFound";
/// The reason of a submission whose pod was changed in a way that it must not run.
const UNFIT: &str = "PodChanged";

impl Launch {
    pub fn begin(job: Job) -> Self {
        let effect = if job.pod_uid.is_some() { Effect::LookUp } else { before(&job, 0) };
        Self {
            is_older: job.pod_uid.is_some(),
            job,
            effect,
            pod: None,
            is_unmarked: false,
            unfit: None,
            is_checked: false,
            last: None,
            adopted: None,
            refused: None,
            taken: String::new(),
            denied: None,
        }
    }

    /// Ends the submission before anything is created for it.
    pub fn refuse(job: Job, reason: &str, message: String) -> Self {
        let mut machine = Self::begin(job);
        machine.pod.clone_from(&machine.job.pod_uid);
        machine.effect = machine.give_up(error(reason.to_owned(), message));
        machine
    }

    fn next(&mut self, answer: EffectResult) -> Effect {
        match (&self.effect, answer) {
            (_, EffectResult::Unknown(why)) => Effect::Settle(Settled::TryAgain(why)),
            // The API server asks quotas, webhooks and policies before it says that a pod exists. That of an earlier try may itself take
            // the room that the quota lacks.
            (
                Effect::CreatePod,
                denied @ (EffectResult::Denied(_) | EffectResult::Postponed(..) | EffectResult::Refused { .. }),
            ) => {
                self.denied = Some(Box::new(denied));
                Effect::LookUp
            }
            (Effect::LookUp, EffectResult::Denied(_) | EffectResult::Postponed(..)) if self.denied.is_some() => {
                self.without_pod()
            }
            (_, EffectResult::Denied(why)) => Effect::Settle(Settled::Denied(why)),
            (_, EffectResult::Postponed(obstacle, why)) => Effect::Settle(Settled::Postponed(obstacle, why)),
            (Effect::CreateBefore(done), EffectResult::Done) => before(&self.job, done + 1),
            (Effect::CreatePod, EffectResult::Created(observed)) => {
                self.inspect(&observed);
                self.record(observed.pod_uid)
            }
            (Effect::CreatePod, EffectResult::Taken(message)) => {
                self.taken = message;
                Effect::LookUp
            }
            (Effect::LookUp, EffectResult::Found(found)) => self.found(found),
            (Effect::RecordPod(uid), EffectResult::Recorded(Some(state))) if may_go_on(state) => {
                self.is_checked = true;
                self.after_pod(uid.clone())
            }
            // The claim is lost, or another pod is recorded: the present holder of the claim decides about this pod. Or a kill was
            // accepted meanwhile: it is the next work on the row, and deletes the pod.
            (Effect::RecordPod(_), EffectResult::Recorded(_)) => Effect::done(),
            // Without its marks the watch doesn't show the pod. The next list finds it, if they can't be restored.
            (Effect::RestoreLabels(uid), EffectResult::Done | EffectResult::Refused { .. }) => self.marked(uid.clone()),
            (Effect::Read, EffectResult::Row(row)) => self.create_last(row.map(|row| row.state)),
            (Effect::Read, EffectResult::Recorded(state)) => self.create_last(state),
            (Effect::HandOver(done, uid), EffectResult::Done) => self.hand_over(done + 1, uid.clone()),
            // The object was deleted with the pod, by another client: the watch observes the end of the driver.
            (Effect::HandOver(done, uid), EffectResult::Refused { reason, .. }) if reason == NOT_FOUND => {
                self.hand_over(done + 1, uid.clone())
            }
            (Effect::CreateBeside(done, driver), EffectResult::Done) => self.beside(done + 1, driver.uid.clone()),
            (Effect::DeleteBefore(done), EffectResult::Done | EffectResult::Refused { .. }) => self.give_back(done + 1),
            (Effect::Advance(StateChange::Ended(_), _), EffectResult::Moved(true)) if self.adopted.is_some() => {
                self.let_go()
            }
            // The end is written first, so that its reason is recorded when the watch observes the deletion. If it wasn't
            // written, the claim is another's, and so is the pod: ours neither to delete nor to let go.
            (Effect::Advance(StateChange::Ended(_), _), EffectResult::Moved(true)) => match &self.pod {
                Some(uid) => Effect::Delete(uid.clone()),
                None => Effect::done(),
            },
            (Effect::Advance(StateChange::Launched, _), EffectResult::Moved(true)) => self.observe(),
            (Effect::Delete(uid), EffectResult::Done) => Effect::RemoveFinalizer(uid.clone()),
            (Effect::Delete(_) | Effect::RemoveFinalizer(_), EffectResult::Refused { message, .. }) => {
                Effect::Settle(Settled::GivenUp(message))
            }
            (
                Effect::CreateBefore(_) | Effect::HandOver(..) | Effect::CreateBeside(..),
                EffectResult::Refused { reason, message },
            ) => self.give_up(error(reason, message)),
            (Effect::LookUp, EffectResult::Refused { message, .. }) => Effect::Settle(Settled::TryAgain(message)),
            _ => Effect::done(),
        }
    }

    /// Records what the driver does that was found, as the watch would.
    fn observe(&self) -> Effect {
        match self.adopted.as_ref().map(|observed| (self.transition(observed), observed.placement())) {
            Some((Transition::Started, placement)) => Effect::Advance(StateChange::Running, placement),
            Some((Transition::Ended(outcome), placement)) => Effect::Advance(StateChange::Ended(outcome), placement),
            _ => Effect::Settle(Settled::GivenBack),
        }
    }

    fn transition(&self, observed: &PodObservation) -> Transition {
        transition(State::Pending, &self.job.kill, observed)
    }

    /// Removes the finalizer of a driver that was found after its end.
    fn let_go(&self) -> Effect {
        match &self.adopted {
            Some(observed) if observed.holds_finalizer => Effect::RemoveFinalizer(observed.pod_uid.clone()),
            _ => Effect::done(),
        }
    }

    fn found(&mut self, found: Found) -> Effect {
        match found {
            Found::There(observed) if self.job.owns(&observed) => {
                let uid = observed.pod_uid.clone();
                // Its labels alone don't prove that an earlier try created it.
                self.is_older |= observed.genuine;
                self.inspect(&observed);
                // A driver that has started or ended without being recorded was created before the database was restored from a
                // backup.
                let has_ended = matches!(self.transition(&observed), Transition::Ended(_));
                let is_adopted = self.job.pod_uid.is_none() && (has_ended || observed.has_started());
                self.adopted = is_adopted.then_some(observed);
                self.record(uid)
            }
            // The pod existed, and may have run: no other is ever created.
            _ if self.job.pod_uid.is_some() => self.give_up(Outcome::pod_gone()),
            _ if self.denied.is_some() => self.without_pod(),
            Found::There(_) => self
                .give_up(error("AlreadyExists".to_owned(), format!("{}, and it isn't this submission's", self.taken))),
            // The pod was deleted between the two calls, before it could start: the next try can use its name.
            Found::Nothing => Effect::Settle(Settled::TryAgain(self.taken.clone())),
        }
    }

    /// Does what follows from the refusal of a pod that doesn't exist.
    fn without_pod(&mut self) -> Effect {
        match self.denied.take().map(|denied| *denied) {
            Some(EffectResult::Denied(why)) => Effect::Settle(Settled::Denied(why)),
            Some(EffectResult::Postponed(obstacle, why)) => Effect::Settle(Settled::Postponed(obstacle, why)),
            Some(EffectResult::Refused { reason, message }) => self.give_up(error(reason, message)),
            _ => Effect::done(),
        }
    }

    fn record(&mut self, uid: String) -> Effect {
        self.pod = Some(uid.clone());
        if self.job.pod_uid.as_ref() == Some(&uid) { self.after_pod(uid) } else { Effect::RecordPod(uid) }
    }

    /// Notes how the pod differs from the one that was sent.
    fn inspect(&mut self, observed: &PodObservation) {
        let is_signed = observed.genuine || !self.job.signed;
        self.is_unmarked =
            !(observed.labelled && is_signed && (observed.holds_finalizer || !self.job.held || observed.deleting));
        // One that has started is stopped after its first end: the watch sees to that.
        let restarted_by = observed.restarted_by.as_ref().filter(|_| observed.is_alive() && !observed.has_started());
        self.unfit = restarted_by.map(|field| {
            let message = format!(
                "the pod has {field} since its creation, by which its kubelet could run the driver twice, and was deleted before it \
                 started: let the mutating webhook that sets this field leave out the pods of Spark drivers"
            );
            error(UNFIT.to_owned(), message)
        });
    }

    fn after_pod(&mut self, uid: String) -> Effect {
        match self.unfit.take() {
            Some(outcome) => self.give_up(outcome),
            None if self.is_unmarked => Effect::RestoreLabels(uid),
            None => self.marked(uid),
        }
    }

    fn marked(&mut self, uid: String) -> Effect {
        match &self.adopted {
            // All its objects exist, and it owns them.
            Some(observed) if observed.has_started() => launched(uid),
            _ => self.hand_over(0, uid),
        }
    }

    fn hand_over(&mut self, next: usize, uid: String) -> Effect {
        match &self.adopted {
            _ if next < self.job.before => Effect::HandOver(next, uid),
            // A driver that has ended needs no more objects.
            Some(_) => launched(uid),
            None => self.beside(0, uid),
        }
    }

    /// The last object is the `ConfigMap` with which the driver can start: each object may take a minute, and a kill may have
    /// been accepted since.
    fn beside(&mut self, next: usize, uid: String) -> Effect {
        if next >= self.job.beside {
            return launched(uid);
        }
        if next + 1 < self.job.beside || self.is_checked {
            return self.create_beside(next, uid);
        }
        self.last = Some((next, uid));
        Effect::Read
    }

    fn create_last(&mut self, state: Option<State>) -> Effect {
        match self.last.take() {
            Some((place, uid)) if state.is_some_and(may_go_on) => self.create_beside(place, uid),
            _ => Effect::done(),
        }
    }

    fn create_beside(&self, place: usize, uid: String) -> Effect {
        Effect::CreateBeside(place, Driver { uid, is_older: self.is_older })
    }

    /// Deletes the objects that were created before the pod, which may not own them yet. Objects created after the pod are
    /// deleted with it.
    fn give_up(&mut self, outcome: Outcome) -> Effect {
        self.refused = Some(outcome);
        self.give_back(0)
    }

    fn give_back(&self, next: usize) -> Effect {
        if next < self.job.before {
            return Effect::DeleteBefore(next);
        }
        self.refused.clone().map_or_else(Effect::done, Effect::end)
    }
}

impl Machine for Launch {
    fn effect(&self) -> &Effect {
        &self.effect
    }

    fn take_result(&mut self, answer: EffectResult) {
        self.is_checked &= !self.effect.writes_to_the_cluster();
        self.effect = self.next(answer);
    }
}

fn before(job: &Job, next: usize) -> Effect {
    if next < job.before { Effect::CreateBefore(next) } else { Effect::CreatePod }
}

/// Returns whether the launch of a row in this state goes on: the attempt hasn't ended, and no kill was accepted. The watch may
/// have seen the driver run already.
fn may_go_on(state: State) -> bool {
    matches!(state, State::Launching | State::Pending | State::Running)
}

fn launched(uid: String) -> Effect {
    Effect::Advance(StateChange::Launched, Placement { pod_uid: Some(uid), ..Placement::default() })
}
