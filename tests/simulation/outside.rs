//! All other actors: users who kill, operators who delete, other users' pods, and failures of machines and networks.

use sparkgate::submission::Phase;

use crate::{
    cluster::{Body, Pod, Whose},
    counts::Count,
    names::{MOST_ATTEMPTS, name_of},
    truth::PodTruth,
    world::World,
};

/// Long enough for a lease to expire, twice.
const LONG: u64 = 7_000;

impl World {
    /// Lets an actor with the necessary rights do one thing.
    pub(crate) fn outsider_steps(&mut self) {
        let Some(number) = self.rng.place(self.store.rows.len()) else { return };
        if self.rng.chance(self.plan.retention * 10) && self.store.delete(number) {
            self.say(|_| format!("retention deletes row {number}"));
            self.counts.add(Count::Retention);
            self.truths.submissions[number].retired = true;
        }
        if self.is_guarded(number) {
            return;
        }
        let Some(name) = self.name_to_disturb(number) else { return };
        let Some(pod) = self.cluster.names[name].pod else {
            if self.rng.chance(self.plan.foreign * 10) {
                let forged = Whose::Forged { of: name_of(number, self.store.row(number).map_or(1, |row| row.attempt)) };
                let whose = if self.rng.chance(500) { forged } else { Whose::Foreign };
                self.foreign(name, whose);
            }
            return;
        };
        if !matches!(pod.whose, Whose::Ours { .. }) {
            if self.settling || self.rng.chance(100) {
                self.say(|_| format!("the foreign pod {} goes", pod.uid));
                self.delete(name, pod.uid, Some(0));
            } else if self.rng.chance(300) {
                self.forged_status(name, pod.uid);
            }
            return;
        }
        if pod.labels.is_some() && self.rng.chance(self.plan.labels * 10) {
            self.say(|_| format!("a controller takes the labels from pod {}", pod.uid));
            self.counts.add(Count::LabelsTaken);
            self.truths.pod(pod.uid).unlabelled = true;
            self.cluster.take_labels(name);
        }
        if pod.is_signed() && self.rng.chance(self.plan.identity * 10) {
            self.say(|_| format!("a controller takes the annotations from pod {}", pod.uid));
            self.counts.add(Count::IdentityTaken);
            self.truths.pod(pod.uid).unsigned = true;
            self.cluster.report(name, |pod| pod.identity = None);
            self.is_disguised(name);
        }
        if self.rng.chance(self.plan.replace * 10) {
            return self.replace(name, pod);
        }
        if self.rng.chance(self.plan.outsider * 10) {
            let forced = self.rng.chance(400) || !pod.bound || pod.phase_is_final();
            self.counts.add(if forced { Count::ForcedOutside } else { Count::DeletedOutside });
            self.say(|_| format!("a user deletes pod {}, by force: {forced}", pod.uid));
            let truth = self.truths.pod(pod.uid);
            truth.deleted_outside = true;
            truth.forced_first |= forced && truth.exit.is_none();
            self.delete(name, pod.uid, forced.then_some(0));
        }
        if pod.finalizer && self.rng.chance(self.plan.strip * 10) {
            self.say(|_| format!("a user removes the finalizer from pod {}", pod.uid));
            self.counts.add(Count::Stripped);
            self.truths.pod(pod.uid).stripped = true;
            self.cluster.remove_finalizer(name, pod.uid, self.now);
        }
    }

    /// Returns mostly the current attempt's name, otherwise that of an earlier one.
    fn name_to_disturb(&mut self, number: usize) -> Option<usize> {
        let attempt = self.store.row(number).map_or(MOST_ATTEMPTS as i32, |row| row.attempt);
        let attempt = if self.rng.chance(700) { attempt } else { 1 + self.rng.place(attempt as usize)? as i32 };
        Some(name_of(number, attempt))
    }

    fn foreign(&mut self, name: usize, whose: Whose) {
        if self.cluster.create_pod(name, whose, false, self.now).is_ok() {
            self.say(|_| format!("a foreign pod stands under the name of attempt {name}: {whose:?}"));
            self.counts.add(if whose == Whose::Foreign { Count::Foreign } else { Count::Forged });
            self.truths.attempts[name].foreign = true;
        }
    }

    /// Sets the status of a forged pod, which may be anything.
    pub(crate) fn forged_status(&mut self, name: usize, uid: u64) {
        let (phase, body) = self.rng.pick(&[
            (Phase::Running, Body::Running),
            (Phase::Succeeded, Body::Exited(0)),
            (Phase::Failed, Body::Exited(9)),
            (Phase::Failed, Body::Absent),
        ]);
        self.say(|_| format!("the foreign pod {uid} shows {phase:?}, {body:?}"));
        self.cluster.report(name, |pod| (pod.phase, pod.body) = (phase, body));
    }

    /// `kubectl replace --force`: deletes the pod by force, and creates a copy with all its metadata under its name.
    fn replace(&mut self, name: usize, pod: Pod) {
        self.counts.add(Count::Replaced);
        self.say(|_| format!("a user replaces pod {} by a copy", pod.uid));
        let truth = self.truths.pod(pod.uid);
        (truth.deleted_outside, truth.stripped) = (true, true);
        truth.forced_first |= truth.exit.is_none();
        self.cluster.remove_finalizer(name, pod.uid, self.now);
        self.delete(name, pod.uid, Some(0));
        let Ok(uid) = self.cluster.create_pod(name, pod.whose, pod.finalizer, self.now) else { return };
        self.cluster.report(name, |copy| (copy.labels, copy.identity) = (pod.labels, pod.identity));
        let unlabelled = pod.labels != Some(name);
        let copy = PodTruth { name: Some(name), stray: true, copied: true, unlabelled, ..PodTruth::default() };
        *self.truths.pod(uid) = PodTruth { unsigned: !pod.is_signed(), stripped: !pod.finalizer, ..copy };
    }

    /// Lets a machine or the network fail.
    pub(crate) fn disturb(&mut self) {
        if self.rng.chance(self.plan.crash * 10) {
            self.crash();
        }
        if self.rng.chance(self.plan.pause * 10) {
            self.pause();
        }
        if self.rng.chance(self.plan.stop * 10) {
            let at = self.rng.below(self.replicas.len() as u64) as usize;
            self.replicas[at].stopping |= self.replicas[at].alive;
        }
        if self.rng.chance(self.plan.away * 10) {
            self.links_break(LONG);
        }
        if self.rng.chance(self.plan.denied * 10) {
            self.say(|_| "the API server denies everything".to_owned());
            self.denied_until = self.now + self.rng.below(LONG);
        }
        if self.rng.chance(self.plan.clock * 10) {
            self.clock_jumps();
        }
        self.operator_steps();
        if self.rng.chance(self.plan.compact * 10) {
            self.say(|_| "changes so far are compacted away".to_owned());
            self.counts.add(Count::Compacted);
            self.cluster.compact();
        }
        for at in 0..self.replicas.len() {
            if !self.replicas[at].alive && self.rng.chance(200) {
                self.say(|_| format!("replica {at} is started again"));
                self.replicas[at].alive = true;
            }
        }
    }

    fn crash(&mut self) {
        let at = self.rng.below(self.replicas.len() as u64) as usize;
        self.say(|_| format!("replica {at} crashes"));
        self.counts.add(Count::Crash);
        // Its requests are still in flight, but it ignores the answers.
        self.replicas[at].ends();
    }

    /// Stops a process, which continues minutes later without noticing. A request that it was about to send, after its
    /// last check of its lease, is sent then.
    fn pause(&mut self) {
        let at = self.rng.below(self.replicas.len() as u64) as usize;
        let until = self.now + self.rng.below(2 * LONG);
        self.say(|world| format!("replica {at} is paused for {} ms", until - world.now));
        self.counts.add(Count::Pause);
        self.replicas[at].paused_until = until;
        for request in self.wire.iter_mut().filter(|request| request.replica == at) {
            if self.rng.chance(700) {
                request.held_until = request.held_until.max(until);
            }
        }
    }

    fn clock_jumps(&mut self) {
        let by = self.rng.below(LONG);
        if self.rng.chance(500) {
            self.counts.add(Count::ClockForwards);
            self.say(|_| format!("the database's clock jumps forwards by {by} ms"));
            self.store.now += by;
        } else {
            self.counts.add(Count::ClockBackwards);
            self.say(|_| format!("the database's clock jumps backwards by {by} ms"));
            self.store.now = self.store.now.saturating_sub(by);
        }
    }
}
