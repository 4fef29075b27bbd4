//! What is seen of a driver pod becomes state.

use super::{Answer, Effect, Found, Machine, Row, Settled};
use crate::submission::{Observation, Outcome, Progress, State, Step, step};

/// Takes one look at a driver pod, or the lack of one, to the row. It needs no claim: what it writes is guarded, what it
/// deletes no submission stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follow {
    /// What was seen; unknown for a pod that wasn't in a list, until it was looked up.
    seen: Option<Box<Observation>>,
    /// The API server itself confirmed that the pod that was seen isn't there any more.
    confirmed: bool,
    effect: Effect,
    row: Option<Row>,
}

impl Follow {
    /// A pod was seen, by a watch or in a list.
    pub fn seen(seen: Box<Observation>) -> Self {
        Self { seen: Some(seen), confirmed: false, effect: Effect::Read, row: None }
    }

    /// The same with the row already read.
    #[must_use]
    pub fn knowing(mut self, row: Option<Row>) -> Self {
        if row.is_some() && self.effect == Effect::Read {
            self.answer(Answer::Row(row));
        }
        self
    }

    /// The pod of a live row wasn't in a list: it may be younger than the list, have lost its labels, or be gone.
    pub fn missed(row: Row) -> Self {
        Self { seen: None, confirmed: false, effect: Effect::LookUp, row: Some(row) }
    }

    fn next(&mut self, answer: Answer) -> Effect {
        match (&self.effect, answer) {
            (_, Answer::Unknown(why) | Answer::Denied(why)) => Effect::Settle(Settled::TryAgain(why)),
            (Effect::Read, Answer::Row(row)) => {
                let before = std::mem::replace(&mut self.row, row);
                if self.seen.is_some() { self.read() } else { self.gone(before.as_ref()) }
            }
            (Effect::LookUp, Answer::Found(found)) => match self.seen.take() {
                None => self.looked_for(found),
                Some(before) if before.gone => self.looked_behind(before, found),
                Some(before) => self.looked_again(&before, found),
            },
            // The outcome is committed, by us or by somebody before us: the pod may go.
            (Effect::Advance(Progress::Ended(_), _), Answer::Moved(_)) => self.let_go(),
            (Effect::Advance(..), Answer::Moved(_)) | (Effect::NoteWaiting { .. }, Answer::Done) => self.keep_watched(),
            (Effect::Delete(uid), Answer::Done) => Effect::LetGo(uid.clone()),
            (_, Answer::Refused { message, .. }) => Effect::Settle(Settled::GivenUp(message)),
            _ => Effect::done(),
        }
    }

    fn read(&mut self) -> Effect {
        let Some(seen) = &self.seen else { return Effect::done() };
        let row = self.row.as_ref().filter(|row| stands_for(row, seen));
        let proven = seen.genuine || row.is_some();
        let Some(row) = row.filter(|row| !row.state.is_terminal()) else {
            let unrecorded =
                |row: &Row| !row.state.is_terminal() && row.pod_uid.is_none() && row.attempt == seen.attempt;
            return match seen.is_alive() {
                // The launch finds out what it is.
                _ if !proven && self.row.as_ref().is_some_and(unrecorded) => Effect::done(),
                // What was seen may be old: before a pod is deleted it is looked at afresh.
                true if proven => Effect::LookUp,
                // It has our labels, and others may have put them there: it isn't ours to delete.
                true => Effect::done(),
                false => self.let_go(),
            };
        };
        match step(row.state, &row.kill, seen) {
            Step::Stay => self.keep_watched(),
            Step::Waiting { reason, message } => Effect::NoteWaiting { reason, message },
            Step::Started => Effect::Advance(Progress::Running, seen.placement()),
            Step::Ended(_) if seen.left_unexplained() && !self.confirmed => Effect::LookUp,
            Step::Ended(outcome) => Effect::Advance(Progress::Ended(outcome), seen.placement()),
        }
    }

    fn looked_for(&mut self, found: Found) -> Effect {
        match (found, &self.row) {
            (Found::There(seen), Some(row)) if stands_for(row, &seen) => {
                self.seen = Some(seen);
                Effect::Read
            }
            // The row may be much older than this look: a kill may have been asked for, and be the reason.
            (_, Some(_)) => Effect::Read,
            (_, None) => Effect::done(),
        }
    }

    /// A watch no longer shows the pod that `before` describes.
    fn looked_behind(&mut self, before: Box<Observation>, found: Found) -> Effect {
        match found {
            // It is still there, and only its labels are gone.
            Found::There(now) if now.pod_uid == before.pod_uid => {
                self.seen = Some(now);
                self.read()
            }
            Found::There(_) | Found::Nothing => {
                self.seen = Some(before);
                self.confirmed = true;
                // A kill may have been asked for meanwhile, and be the reason.
                Effect::Read
            }
        }
    }

    /// The pod that `before` knew isn't there.
    fn gone(&self, before: Option<&Row>) -> Effect {
        match (before, &self.row) {
            (Some(before), Some(now)) if now.attempt == before.attempt && now.pod_uid == before.pod_uid => {
                match now.state {
                    state if state.is_terminal() => Effect::done(),
                    State::Killing => Effect::end(Outcome::killed(&now.kill)),
                    _ => Effect::end(Outcome::pod_gone()),
                }
            }
            // Another pod stands for it now: the next list tells.
            _ => Effect::done(),
        }
    }

    /// A live driver that no submission stands for must not run: a writer that was paused may have created it late.
    fn looked_again(&mut self, before: &Observation, found: Found) -> Effect {
        match found {
            Found::There(now) if now.pod_uid == before.pod_uid && now.is_alive() => Effect::Delete(now.pod_uid),
            Found::There(now) if now.pod_uid == before.pod_uid => {
                self.seen = Some(now);
                self.let_go()
            }
            Found::There(_) | Found::Nothing => Effect::done(),
        }
    }

    /// Without its labels the watch would not show how the driver ends.
    fn keep_watched(&self) -> Effect {
        match &self.seen {
            Some(seen) if !seen.labelled && !seen.gone => Effect::RestoreLabels(seen.pod_uid.clone()),
            Some(_) | None => Effect::done(),
        }
    }

    fn let_go(&self) -> Effect {
        match &self.seen {
            Some(seen) if seen.holds_finalizer && !seen.gone => Effect::LetGo(seen.pod_uid.clone()),
            Some(_) | None => Effect::done(),
        }
    }
}

impl Machine for Follow {
    fn effect(&self) -> &Effect {
        &self.effect
    }

    fn answer(&mut self, answer: Answer) {
        self.effect = self.next(answer);
    }
}

/// Whether the pod is the one of the submission. Labels alone never make it so.
fn stands_for(row: &Row, seen: &Observation) -> bool {
    row.attempt == seen.attempt && row.pod_uid.as_ref().map_or(seen.genuine, |uid| *uid == seen.pod_uid)
}
