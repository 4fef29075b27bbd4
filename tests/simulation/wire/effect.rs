//! Carries out the engine's effects in the models.

use sparkgate::submission::engine::{Effect, EffectResult, Found, Obstacle};

use crate::{
    cluster::{Whose, uid_number},
    counts::Count,
    names::name_of,
    plan::Refused,
    world::World,
};

impl World {
    pub(super) fn effect(
        &mut self,
        submission: usize,
        attempt: i32,
        name: usize,
        claim: Option<i64>,
        effect: &Effect,
    ) -> EffectResult {
        let of_the_cluster = effect.writes_to_the_cluster() || *effect == Effect::LookUp;
        let away = if of_the_cluster { self.cluster_away_until } else { self.database_away_until };
        if self.now < away {
            return EffectResult::Unknown("away".to_owned());
        }
        if of_the_cluster && self.now < self.denied_until {
            self.counts.add(Count::Denied);
            // An API server refuses without a right, or for the sake of something that passes as well.
            return match submission % 2 {
                0 => EffectResult::Denied("no right".to_owned()),
                _ => EffectResult::Postponed(Obstacle::Quota, "no room".to_owned()),
            };
        }
        let answer = match effect {
            Effect::Read => return EffectResult::Row(self.store.read(submission)),
            Effect::LookUp => return EffectResult::Found(self.look_up(name, name_of(submission, attempt))),
            Effect::RecordPod(uid) => {
                let claim = claim.unwrap_or_default();
                EffectResult::Recorded(self.store.record_pod(submission, attempt, claim, uid))
            }
            Effect::Advance(progress, placement) => {
                let unowned = self.cluster.names[name].before.iter().flatten().any(|object| object.owner.is_none());
                self.truths.attempts[name].may_leave_an_object |= claim.is_none() && unowned;
                EffectResult::Moved(self.store.advance(submission, attempt, claim, progress, placement))
            }
            Effect::NoteWaiting { reason, message } => {
                self.store.note_waiting(submission, attempt, reason, message);
                return EffectResult::Done;
            }
            Effect::Settle(_) => return EffectResult::Done,
            write => return self.write(submission, attempt, name, claim, write),
        };
        self.check(submission);
        answer
    }

    /// Looks up the pod of this name as the driver of the attempt `of`.
    fn look_up(&self, name: usize, of: usize) -> Found {
        let Some(pod) = self.cluster.names[name].pod else { return Found::Nothing };
        Found::There(Box::new(pod.looked_up(&self.id_of(of), of, false)))
    }

    fn write(
        &mut self,
        submission: usize,
        attempt: i32,
        name: usize,
        claim: Option<i64>,
        effect: &Effect,
    ) -> EffectResult {
        let now = self.now;
        let refused = self.plan.wanted[submission].refused;
        match effect {
            Effect::CreateBefore(_) if refused == Refused::Before => self.refuse(),
            Effect::CreateBefore(place) => {
                let late = !self.claim_holds(submission, claim);
                self.truths.attempts[name].may_leave_an_object |= late;
                self.cluster.create_before(name, *place);
                EffectResult::Done
            }
            Effect::CreatePod if refused == Refused::Pod => self.refuse(),
            Effect::CreatePod => self.create_pod(submission, attempt, name, claim),
            Effect::HandOver(place, uid) => {
                if self.cluster.hand_over(name, *place, uid_number(uid), now) {
                    EffectResult::Done
                } else {
                    EffectResult::Refused { reason: "NotFound".to_owned(), message: String::new() }
                }
            }
            Effect::CreateBeside(..) if refused == Refused::Beside => self.refuse(),
            Effect::CreateBeside(place, driver) => {
                let late = !self.claim_holds(submission, claim);
                match self.cluster.create_beside(name, *place, uid_number(&driver.uid), late, now) {
                    Ok(()) => EffectResult::Done,
                    Err(_) => EffectResult::Refused { reason: "AlreadyExists".to_owned(), message: String::new() },
                }
            }
            Effect::DeleteBefore(place) => {
                self.cluster.delete_before(name, *place);
                EffectResult::Done
            }
            Effect::Delete(uid) => {
                let uid = uid_number(uid);
                if self.cluster.pod(uid).is_some_and(|pod| matches!(pod.whose, Whose::Forged { .. })) {
                    self.fail(format!("pod {uid} is forged, and is deleted"));
                }
                if self.truths.pod(uid).stray && self.cluster.delete_pod(name, uid, None, now) {
                    self.counts.add(Count::Reaped);
                }
                self.cluster.delete_pod(name, uid, None, now);
                EffectResult::Done
            }
            Effect::RestoreLabels(uid) => {
                let uid = uid_number(uid);
                if self.cluster.pod(uid).is_some_and(|pod| !matches!(pod.whose, Whose::Ours { .. })) {
                    self.fail(format!(
                        "pod {uid} isn't ours, and gets the identity of attempt {attempt} of {submission}"
                    ));
                }
                self.cluster.restore_labels(name, uid, name_of(submission, attempt));
                EffectResult::Done
            }
            Effect::RemoveFinalizer(uid) => {
                self.archive(submission, attempt, uid);
                self.cluster.remove_finalizer(name, uid_number(uid), now);
                EffectResult::Done
            }
            _ => EffectResult::Done,
        }
    }

    /// Archives the log of an ended driver, which the gateway does before it removes the finalizer.
    fn archive(&mut self, submission: usize, attempt: i32, uid: &str) {
        if self.now < self.database_away_until || !self.store.log_to_keep(submission, attempt, uid) {
            return;
        }
        self.counts.add(Count::Archived);
        self.store.keep_log(submission, attempt);
        if let Err(wrong) = self.truths.archive(name_of(submission, attempt), uid_number(uid)) {
            self.fail(wrong);
        }
    }

    fn refuse(&mut self) -> EffectResult {
        self.counts.add(Count::Refusal);
        EffectResult::Refused { reason: "Forbidden".to_owned(), message: "no".to_owned() }
    }

    fn create_pod(&mut self, submission: usize, attempt: i32, name: usize, claim: Option<i64>) -> EffectResult {
        let ours = Whose::Ours { attempt };
        let Ok(uid) = self.cluster.create_pod(name, ours, self.plan.finalizer, self.now) else {
            return EffectResult::Taken(String::new());
        };
        let holds = self.claim_holds(submission, claim);
        if !holds {
            self.counts.add(Count::Stray);
        }
        if let Err(wrong) = self.truths.create(name, uid, holds, self.plan.finalizer) {
            self.fail(wrong);
        }
        match self.look_up(name, name_of(submission, attempt)) {
            Found::There(seen) => EffectResult::Created(seen),
            Found::Nothing => EffectResult::Unknown("it is gone".to_owned()),
        }
    }

    fn claim_holds(&self, submission: usize, claim: Option<i64>) -> bool {
        let row = self.store.row(submission);
        row.is_some_and(|row| Some(row.claim_epoch) == claim && row.claimed_by.is_some() && !row.state.is_terminal())
    }
}
