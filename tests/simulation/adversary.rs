//! The tenants: their callers, who kill and clear, and their drivers, which do with the pods of their namespaces what the API server
//! lets them. What a driver can't do is to act in another namespace, or to sign an identity.

use sparkgate::submission::KillCause;

use crate::{
    cluster::{Pod, Whose},
    counts::Count,
    names::{MOST_ATTEMPTS, free_name, name_of, submission_of},
    plan::TENANTS,
    world::World,
};

impl World {
    /// Returns whether only the gateway and the cluster act in the namespace of a submission.
    pub(crate) fn is_guarded(&self, submission: usize) -> bool {
        self.plan.guarded == Some(self.truths.submissions[submission].tenant)
    }

    /// Lets a caller and a driver of some tenant do one thing each.
    pub(crate) fn tenant_steps(&mut self) {
        self.caller_steps();
        self.driver_steps();
    }

    fn caller_steps(&mut self) {
        let Some(number) = self.rng.place(self.store.rows.len()) else { return };
        let tenant = self.rng.below(TENANTS) as usize;
        if self.rng.chance(self.plan.kill * 50) {
            self.say(|_| format!("a caller of tenant {tenant} kills row {number}"));
            let is_own = self.truths.submissions[number].tenant == tenant;
            self.counts.add(if is_own { Count::Kill } else { Count::KillAcross });
            if self.store.request_kill(number, tenant) && is_own {
                self.truths.submissions[number].is_killed(KillCause::Request);
            }
            self.check(number);
        }
        self.hold_steps(number, tenant);
        if self.rng.chance(self.plan.kill_all * 10) {
            self.say(|_| format!("a caller of tenant {tenant} kills all"));
            self.counts.add(Count::KillAll);
            for number in self.store.request_kill_of_all(tenant) {
                if self.truths.submissions[number].tenant == tenant {
                    self.truths.submissions[number].is_killed(KillCause::Request);
                }
            }
            self.check_all();
        }
        if self.rng.chance(self.plan.kill_all * 30) {
            self.say(|_| format!("a caller of tenant {tenant} clears what has ended"));
            let ended: Vec<bool> = self.store.rows.iter().flatten().map(|row| row.state.is_terminal()).collect();
            if self.store.clear_ended(tenant) > 0 {
                self.counts.add(Count::Cleared);
            }
            let rows = self.store.rows.iter().zip(&mut self.truths.submissions).filter(|(row, _)| row.is_some());
            for ((_, truth), ended) in rows.zip(ended) {
                truth.cleared |= ended && truth.tenant == tenant;
            }
            self.check_all();
        }
    }

    fn check_all(&mut self) {
        (0..self.store.rows.len()).for_each(|number| self.check(number));
    }

    fn driver_steps(&mut self) {
        let Some(home) = self.rng.place(self.store.rows.len()).filter(|home| !self.is_guarded(*home)) else { return };
        if !self.rng.chance(self.plan.forge * 15) {
            return;
        }
        let free = free_name(home);
        match (self.rng.below(4), self.cluster.names[free].pod) {
            (0 | 1, None) => self.pose(home),
            (0, Some(pod)) => {
                self.say(|_| format!("the forged pod {} is deleted", pod.uid));
                self.cluster.remove_finalizer(free, pod.uid, self.now);
                self.delete(free, pod.uid, Some(0));
            }
            (1, Some(pod)) => self.forged_status(free, pod.uid),
            _ => self.overwrite(home),
        }
    }

    /// Returns the names of an attempt of any submission. Their ids count up, so others can guess them.
    fn some_attempt(&mut self) -> Option<usize> {
        // Most are another tenant's, if there is one.
        let mut number = self.rng.place(self.store.rows.len())?;
        if let Some(guarded) = self.plan.guarded.filter(|_| self.rng.chance(700)) {
            let tenants = self.truths.submissions.iter().map(|submission| submission.tenant);
            let foreign: Vec<usize> =
                (0..).zip(tenants).filter(|(_, tenant)| *tenant == guarded).map(|(at, _)| at).collect();
            number = self.rng.place(foreign.len()).map_or(number, |at| foreign[at]);
        }
        let attempt = match self.store.row(number) {
            Some(row) if self.rng.chance(600) => row.attempt,
            _ => 1 + self.rng.below(MOST_ATTEMPTS as u64) as i32,
        };
        Some(name_of(number, attempt))
    }

    /// Returns a pod of the gateway in the namespaces of the tenant of this submission, whose annotations its drivers can read.
    fn some_own_pod(&mut self, home: usize) -> Option<usize> {
        let tenant = self.truths.submissions[home].tenant;
        let is_own = |name: usize| self.truths.submissions[submission_of(name)].tenant == tenant;
        let ours = self.cluster.pods().filter(|pod| matches!(pod.whose, Whose::Ours { .. }) && is_own(pod.name));
        let names: Vec<usize> = ours.map(|pod| pod.name).collect();
        self.rng.place(names.len()).map(|at| names[at])
    }

    /// Creates a pod under a free name with the labels of an attempt, and possibly with another pod's identity and our finalizer.
    fn pose(&mut self, home: usize) {
        let Some(of) = self.some_attempt() else { return };
        let identity = if self.rng.chance(400) { self.some_own_pod(home) } else { None };
        let (name, finalizer) = (free_name(home), self.rng.chance(500));
        let Ok(uid) = self.cluster.create_pod(name, Whose::Forged { of }, finalizer, self.now) else { return };
        self.say(|_| format!("the forged pod {uid} has the labels of attempt {of}, the identity of {identity:?}"));
        self.cluster.report(name, |pod| pod.identity = identity);
        self.counts.add(Count::Posed);
        let tenants = [of, name].map(|name| self.truths.submissions[submission_of(name)].tenant);
        if tenants[0] != tenants[1] {
            self.counts.add(Count::PosedAcross);
        }
        if identity.is_some() {
            self.counts.add(Count::PosedSigned);
        }
    }

    /// Overwrites the labels of a driver pod with those of another attempt, or its identity with another pod's.
    fn overwrite(&mut self, home: usize) {
        let (Some(name), Some(of)) = (self.some_own_pod(home), self.some_attempt()) else { return };
        let Some(pod) = self.cluster.names[name].pod else { return };
        if self.rng.chance(500) {
            if pod.labels.is_some() && of != name {
                self.say(|_| format!("the labels of pod {} become those of attempt {of}", pod.uid));
                self.counts.add(Count::Relabelled);
                self.truths.pod(pod.uid).unlabelled = true;
                self.cluster.report(name, |pod| pod.labels = Some(of));
                self.is_disguised(name);
            }
        } else if let Some(other) = self.some_own_pod(home).filter(|other| *other != name) {
            self.say(|_| format!("the identity of pod {} becomes that of the pod of attempt {other}", pod.uid));
            self.counts.add(Count::Resigned);
            self.truths.pod(pod.uid).unsigned = true;
            self.cluster.report(name, |pod| pod.identity = Some(other));
            self.is_disguised(name);
        }
    }

    /// Records that a pod which names another attempt, and has no identity of its own, may lose our finalizer: to the gateway it is
    /// a pod that others created.
    pub(crate) fn is_disguised(&mut self, name: usize) {
        let disguised = |pod: &Pod| !pod.is_signed() && pod.labels.is_some_and(|of| of != name);
        if let Some(pod) = self.cluster.names[name].pod.filter(disguised) {
            self.counts.add(Count::Disguised);
            self.truths.pod(pod.uid).stripped = true;
        }
    }
}
