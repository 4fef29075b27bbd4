//! Carries out the engine's effects in the models.

use sparkgate::submission::engine::{Effect, EffectResult, Found, Obstacle};

use crate::{
    cluster::{Whose, uid_number},
    counts::Count,
    flaw::Flaw,
    links::{Trouble, Way},
    names::name_of,
    plan::Refused,
    store::Next,
    world::World,
};

impl World {
    pub(super) fn effect(
        &mut self,
        replica: usize,
        submission: usize,
        attempt: i32,
        name: usize,
        claim: Option<i64>,
        effect: &Effect,
    ) -> EffectResult {
        if let Some(result) = self.in_trouble(replica, submission, effect) {
            return result;
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
            write => return self.write(replica, submission, attempt, name, claim, write),
        };
        self.check(submission);
        answer
    }

    /// Returns the result of an effect that doesn't get through.
    fn in_trouble(&mut self, replica: usize, submission: usize, effect: &Effect) -> Option<EffectResult> {
        let now = self.now;
        let unknown = |why: &str| Some(EffectResult::Unknown(why.to_owned()));
        let trouble = self.links.trouble(self.truths.submissions[submission].tenant, now);
        if !effect.writes_to_the_cluster() && *effect != Effect::LookUp {
            // A read needs no lock.
            let locked = trouble == Some(Trouble::Locked) && *effect != Effect::Read;
            let away = locked || !self.links.reaches_database(replica, now);
            return if away { unknown("away") } else { None };
        }
        match self.links.to_cluster(replica, now) {
            Way::Open => {}
            Way::Page if self.plan.flaw == Some(Flaw::TakesPagesForAnswers) => match effect {
                Effect::LookUp => return unknown("404 page not found"),
                Effect::Delete(_) | Effect::RemoveFinalizer(_) => return Some(EffectResult::Done),
                _ => return Some(not_found()),
            },
            Way::Page | Way::Away => return unknown("away"),
        }
        if now < self.denied_until {
            self.counts.add(Count::Denied);
            // An API server refuses without a right, or for the sake of something that passes as well.
            return Some(match submission % 2 {
                0 => EffectResult::Denied("no right".to_owned()),
                _ => EffectResult::Postponed(Obstacle::Quota, "no room".to_owned()),
            });
        }
        if *effect == Effect::LookUp {
            return None;
        }
        match trouble? {
            Trouble::Hangs => unknown("no answer"),
            Trouble::Denies => Some(EffectResult::Denied("denied".to_owned())),
            Trouble::OverQuota if *effect == Effect::CreatePod && self.plan.flaw == Some(Flaw::EndsOverQuota) => {
                Some(EffectResult::Refused { reason: "Forbidden".to_owned(), message: "exceeded quota".to_owned() })
            }
            Trouble::OverQuota if *effect == Effect::CreatePod => {
                Some(EffectResult::Postponed(Obstacle::Quota, "exceeded quota".to_owned()))
            }
            Trouble::OverQuota | Trouble::Locked => None,
        }
    }

    /// Looks up the pod of this name as the driver of the attempt `of`.
    fn look_up(&self, name: usize, of: usize) -> Found {
        let Some(pod) = self.cluster.names[name].pod else { return Found::Nothing };
        Found::There(Box::new(pod.looked_up(&self.id_of(of), of, false)))
    }

    fn write(
        &mut self,
        replica: usize,
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
                    not_found()
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
                self.archive(replica, submission, attempt, uid);
                self.cluster.remove_finalizer(name, uid_number(uid), now);
                EffectResult::Done
            }
            _ => EffectResult::Done,
        }
    }

    /// Archives the log of an ended driver, which the gateway does before it removes the finalizer.
    fn archive(&mut self, replica: usize, submission: usize, attempt: i32, uid: &str) {
        if !self.links.reaches_database(replica, self.now) || !self.store.log_to_keep(submission, attempt, uid) {
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
        if self.rng.chance(self.plan.restarts) {
            self.say(|_| format!("a webhook lets the kubelet restart the driver of pod {uid}"));
            self.counts.add(Count::Restarts);
            self.cluster.let_restart(name, self.plan.flaw != Some(Flaw::IgnoresRestarts));
            self.truths.attempts[name].changed = true;
        }
        let holds = self.claim_holds(submission, claim);
        if !holds {
            self.counts.add(Count::Stray);
        }
        if let Err(wrong) = self.truths.create(name, uid, holds, self.plan.finalizer) {
            self.fail(wrong);
        }
        if let Some(row) = self.store.row(submission) {
            let before = row.past.iter().take(attempt as usize - 1);
            let grown = before.filter(|past| past.next == Next::Memory).count() as u32;
            if row.grown.get(&attempt).copied().unwrap_or_default() != grown {
                self.fail(format!("pod {uid} has memory that grew {grown} times, which isn't recorded"));
            }
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

fn not_found() -> EffectResult {
    EffectResult::Refused { reason: "NotFound".to_owned(), message: String::new() }
}
