//! Turns observations of a driver pod into state.

use super::{
    Machine,
    effect::{Effect, EffectResult, Found, Row, Settled},
};
use crate::{
    observation::PodObservation,
    outcome::Outcome,
    state::State,
    state_change::StateChange,
    transition::{Transition, transition},
};

/// Applies one observation of a driver pod, or of its absence, to the row. Needs no claim: its writes are guarded, and it only
/// deletes pods without a submission. What it sees is judged by a row that was read later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    /// The observation; `None` for a pod that wasn't in a list, until it is looked up.
    observed: Option<Box<PodObservation>>,
    /// The API server confirmed that the observed pod no longer exists.
    confirmed: bool,
    /// The pod is deleted so that its driver doesn't run again. Its end is yet to be observed.
    stops: bool,
    /// An end didn't move the row, which is read again.
    reads_again: bool,
    effect: Effect,
    row: Option<Row>,
}

impl Follow {
    /// Starts with an observation of a pod, from a watch or a list.
    pub fn observed(observed: Box<PodObservation>) -> Self {
        Self::begin(Some(observed), Effect::Read, None)
    }

    /// Passes the row, if it was already read.
    #[must_use]
    pub fn knowing(mut self, row: Option<Row>) -> Self {
        if row.is_some() && self.effect == Effect::Read {
            self.take_result(EffectResult::Row(row));
        }
        self
    }

    /// Starts with the row of a live submission whose pod wasn't in a list: it may be newer than the list, have lost its
    /// labels, or be gone.
    pub fn missed(row: Row) -> Self {
        Self::begin(None, Effect::LookUp, Some(row))
    }

    fn begin(observed: Option<Box<PodObservation>>, effect: Effect, row: Option<Row>) -> Self {
        Self { observed, confirmed: false, stops: false, reads_again: false, effect, row }
    }

    fn next(&mut self, answer: EffectResult) -> Effect {
        match (&self.effect, answer) {
            (_, EffectResult::Unknown(why) | EffectResult::Denied(why) | EffectResult::Postponed(_, why)) => {
                Effect::Settle(Settled::TryAgain(why))
            }
            (Effect::Read, EffectResult::Row(row)) => {
                let before = std::mem::replace(&mut self.row, row);
                if self.observed.is_some() { self.read() } else { self.gone(before.as_ref()) }
            }
            (Effect::LookUp, EffectResult::Found(found)) => match self.observed.take() {
                None => self.looked_for(found),
                Some(before) if before.gone => self.looked_behind(before, found),
                Some(before) => self.looked_again(&before, found),
            },
            // The outcome is committed: the finalizer may be removed.
            (Effect::Advance(StateChange::Ended(_), _), EffectResult::Moved(true)) => self.remove_finalizer(),
            // It was committed earlier, or the row has changed while it was tried, as by a kill. The row says which.
            (Effect::Advance(StateChange::Ended(_), _), EffectResult::Moved(false)) if !self.reads_again => {
                self.reads_again = true;
                Effect::Read
            }
            (Effect::Advance(StateChange::Ended(_), _), EffectResult::Moved(false)) => {
                Effect::Settle(Settled::TryAgain("the end of the driver can't be recorded".to_owned()))
            }
            (Effect::Advance(..), EffectResult::Moved(_)) | (Effect::NoteWaiting { .. }, EffectResult::Done) => {
                self.keep_watched()
            }
            (Effect::Delete(uid), EffectResult::Done) if !self.stops => Effect::RemoveFinalizer(uid.clone()),
            (_, EffectResult::Refused { message, .. }) => Effect::Settle(Settled::GivenUp(message)),
            _ => Effect::done(),
        }
    }

    fn read(&mut self) -> Effect {
        let Some(observed) = &self.observed else { return Effect::done() };
        let row = self.row.as_ref().filter(|row| stands_for(row, observed));
        let proven = observed.genuine || row.is_some();
        let Some(row) = row.filter(|row| !row.state.is_terminal()) else {
            let unrecorded =
                |row: &Row| !row.state.is_terminal() && row.pod_uid.is_none() && row.attempt == observed.attempt;
            return match observed.is_alive() {
                // The database was restored from a backup. Once the row reaches this attempt again, its launch finds the pod.
                _ if observed.genuine && self.row.as_ref().is_some_and(|row| is_ahead(row, observed)) => Effect::done(),
                // The launch decides about it.
                _ if !proven && self.row.as_ref().is_some_and(unrecorded) => Effect::done(),
                // The observation may be stale: before a pod is deleted, it is looked up again.
                true if proven => Effect::LookUp,
                // Another client may have put our labels on it: it isn't ours to delete.
                true => Effect::done(),
                false => self.remove_finalizer(),
            };
        };
        // After a restore, too: the launch records the names of a later attempt, by which a kill finds the pod.
        if row.state == State::Queued && row.attempt > 1 {
            return Effect::done();
        }
        match transition(row.state, &row.kill, observed) {
            Transition::Stay => self.keep_watched(),
            Transition::Waiting { reason, message } => Effect::NoteWaiting { reason, message },
            Transition::Started => Effect::Advance(StateChange::Running, observed.placement()),
            Transition::MayRunAgain if observed.deleting => self.keep_watched(),
            // As before any deletion.
            Transition::MayRunAgain => Effect::LookUp,
            Transition::Ended(_) if observed.left_unexplained() && !self.confirmed => Effect::LookUp,
            Transition::Ended(outcome) => Effect::Advance(StateChange::Ended(outcome), observed.placement()),
        }
    }

    fn looked_for(&mut self, found: Found) -> Effect {
        match (found, &self.row) {
            (Found::There(observed), Some(row)) if stands_for(row, &observed) => {
                self.observed = Some(observed);
                Effect::Read
            }
            // The row may be much older than the look-up: a kill may have been requested since, and be the reason.
            (_, Some(_)) => Effect::Read,
            (_, None) => Effect::done(),
        }
    }

    /// Handles the look-up of a pod, described by `before`, that left the watch.
    fn looked_behind(&mut self, before: Box<PodObservation>, found: Found) -> Effect {
        match found {
            // It still exists, and has only lost its labels. A kill may have been requested since the row was read, and be the reason
            // of what is seen now.
            Found::There(now) if now.pod_uid == before.pod_uid => {
                self.observed = Some(now);
                Effect::Read
            }
            Found::There(_) | Found::Nothing => {
                self.observed = Some(before);
                self.confirmed = true;
                // A kill may have been requested in the meantime, and be the reason.
                Effect::Read
            }
        }
    }

    /// Decides about a submission whose pod, known to `before`, doesn't exist.
    fn gone(&self, before: Option<&Row>) -> Effect {
        match (before, &self.row) {
            (Some(before), Some(now)) if now.attempt == before.attempt && now.pod_uid == before.pod_uid => {
                match now.state {
                    state if state.is_terminal() => Effect::done(),
                    State::Killing => Effect::end(Outcome::killed(&now.kill)),
                    _ => Effect::end(Outcome::pod_gone()),
                }
            }
            // The submission has another pod now, which the next list contains.
            _ => Effect::done(),
        }
    }

    /// Handles the look-up of a driver that must not run: one without a submission, which a paused writer may have created late,
    /// or one that its kubelet may have started again.
    fn looked_again(&mut self, before: &PodObservation, found: Found) -> Effect {
        let is_live = |row: &Row| stands_for(row, before) && !row.state.is_terminal();
        let is_live = self.row.as_ref().is_some_and(is_live);
        match found {
            Found::There(now) if now.pod_uid == before.pod_uid && is_live => {
                if now.may_run_again() && !now.deleting {
                    self.stops = true;
                    return Effect::Delete(now.pod_uid);
                }
                // As behind the watch: the row is older than what is seen now.
                self.observed = Some(now);
                Effect::Read
            }
            Found::There(now) if now.pod_uid == before.pod_uid && now.is_alive() => Effect::Delete(now.pod_uid),
            Found::There(now) if now.pod_uid == before.pod_uid => {
                self.observed = Some(now);
                self.remove_finalizer()
            }
            Found::There(_) | Found::Nothing => Effect::done(),
        }
    }

    /// Restores missing labels: without them, the watch would not see the end of the driver.
    fn keep_watched(&self) -> Effect {
        match &self.observed {
            Some(observed) if !observed.labelled && !observed.gone => Effect::RestoreLabels(observed.pod_uid.clone()),
            Some(_) | None => Effect::done(),
        }
    }

    /// Removes the finalizer. A pod that left the watch with it may only have lost its labels.
    fn remove_finalizer(&self) -> Effect {
        match &self.observed {
            Some(observed) if !observed.holds_finalizer => Effect::done(),
            Some(observed) if observed.gone && !self.confirmed => Effect::LookUp,
            Some(observed) if !observed.gone => Effect::RemoveFinalizer(observed.pod_uid.clone()),
            Some(_) | None => Effect::done(),
        }
    }
}

impl Machine for Follow {
    fn effect(&self) -> &Effect {
        &self.effect
    }

    fn take_result(&mut self, answer: EffectResult) {
        self.effect = self.next(answer);
    }
}

/// Returns whether the pod belongs to the submission's current attempt: it is where the row says, under the name that the row says, and
/// its uid or its identity proves it. Labels alone never do.
fn stands_for(row: &Row, observed: &PodObservation) -> bool {
    row.attempt == observed.attempt
        && row.namespace == observed.namespace
        && row.pod.as_ref().is_none_or(|name| *name == observed.pod)
        && row.pod_uid.as_ref().map_or(observed.genuine, |uid| *uid == observed.pod_uid)
}

/// Returns whether the pod belongs to a later attempt of a live submission. The row may still get there.
fn is_ahead(row: &Row, observed: &PodObservation) -> bool {
    !row.state.is_terminal() && row.attempt < observed.attempt
}
