//! One history: a database, a cluster, replicas and all other actors, step by step.

use sparkgate::submission::{KillCause, RetryKind, SubmissionId};

use crate::{
    cluster::{Cluster, Whose},
    counts::{Count, Counts},
    flaw::Flaw,
    links::Links,
    names::{MOST_ATTEMPTS, NAMES, name_of, submission_of},
    plan::{Plan, Refused, Wanted},
    queues::Rules,
    replica::Replica,
    rng::Rng,
    store::{Next, Store, Time},
    truth::{Attempt, Submission, Truths},
    wire::Request,
};

/// The pause before the first retry; shorter than in the gateway.
const RETRY_AFTER: Time = 400;

/// The number of rounds of eight steps within which everything has to finish once the faults have ended. About one history in a
/// million takes more than 3,000: its only replica that is up reads the many changes that others made to one pod.
const SETTLED_WITHIN: u64 = 12_000;

pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) plan: Plan,
    /// The clock of all machines except the database.
    pub(crate) now: Time,
    pub(crate) store: Store,
    pub(crate) cluster: Cluster,
    pub(crate) replicas: Vec<Replica>,
    /// Requests that were sent and not carried out yet.
    pub(crate) wire: Vec<Request>,
    pub(crate) truths: Truths,
    pub(crate) ids: Vec<SubmissionId>,
    pub(crate) counts: Counts,
    /// The number of retries counted for each submission.
    retries_told: Vec<usize>,
    pub(crate) last_session: u64,
    pub(crate) last_request: u64,
    pub(crate) links: Links,
    /// Until then the API server denies everything: the gateway's rights are missing, or the server's caches are empty.
    pub(crate) denied_until: Time,
    /// What the access file has said of queues, with the newest last; empty without queues.
    pub(crate) rules: Vec<Rules>,
    pub(crate) settling: bool,
    /// All changes after this version are reported to some replica. Earlier ones may not be: they are older than the
    /// latest list without a resume.
    pub(crate) shown_from: u64,
    /// The first violation that was found.
    pub(crate) wrong: Option<String>,
    /// The history in words, if it is requested.
    told: Option<Vec<String>>,
}

/// A history in which a check failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) seed: u64,
    pub(crate) wrong: String,
    pub(crate) history: Vec<String>,
}

/// Plays the history of a seed; with a flaw, something is wrong in the gateway itself.
pub(crate) fn play(flaw: Option<Flaw>, seed: u64, tell: bool) -> Result<(Counts, Vec<String>), Failure> {
    let mut world = World::new(seed, tell);
    world.plan.flaw = flaw;
    world.run();
    match world.wrong {
        None => Ok((world.counts, world.told.unwrap_or_default())),
        Some(wrong) => Err(Failure { seed, wrong, history: world.told.unwrap_or_default() }),
    }
}

impl World {
    fn new(seed: u64, tell: bool) -> Self {
        let mut rng = Rng::new(seed);
        let plan = Plan::draw(&mut rng);
        let mut counts = Counts::default();
        counts.add(Count::History);
        if !plan.finalizer {
            counts.add(Count::WithoutFinalizer);
        }
        if plan.guarded.is_some() {
            counts.add(Count::Guarded);
        }
        let rules = if plan.queues { vec![Rules::draw(&mut rng)] } else { Vec::new() };
        if plan.queues {
            counts.add(Count::WithQueues);
        }
        let (replicas, links) = (vec![Replica::start(); plan.replicas], Links::new(plan.replicas));
        let start = 1_000_000;
        Self {
            rng,
            plan,
            now: start,
            store: Store { now: start, pause: RETRY_AFTER, ..Store::default() },
            cluster: Cluster::default(),
            replicas,
            wire: Vec::new(),
            truths: Truths::default(),
            ids: Vec::new(),
            counts,
            retries_told: Vec::new(),
            last_session: 0,
            last_request: 0,
            links,
            denied_until: 0,
            rules,
            settling: false,
            shown_from: 0,
            wrong: None,
            told: tell.then(Vec::new),
        }
    }

    fn run(&mut self) {
        self.say(|world| format!("{:?}", world.plan));
        while self.wrong.is_none() && self.plan.steps > 0 {
            self.plan.steps -= 1;
            self.step();
        }
        let lasts = self.plan.lasts;
        self.settle();
        if lasts {
            self.draw_what_lasts();
        }
        self.settle_queues();
        if let Some(lasting) = self.links.lasting {
            self.until_settled(&format!("only this lasts: {lasting:?}"));
            self.say(|_| "nothing lasts any more".to_owned());
            self.end_what_lasted();
            self.settle_queues();
        }
        self.until_settled("nothing disturbs any more");
    }

    /// Goes on until everything has ended that doesn't depend on what lasts.
    fn until_settled(&mut self, so: &str) {
        for _ in 0..SETTLED_WITHIN {
            if self.wrong.is_some() || self.unsettled().is_none() {
                return;
            }
            for _ in 0..8 {
                self.step();
            }
        }
        if let Some(left) = self.unsettled() {
            self.fail(format!("{so}, and still: {left}"));
        }
    }

    fn step(&mut self) {
        self.counts.add(Count::Step);
        let moved = self.rng.below(self.plan.tick);
        self.now += moved;
        self.store.now += moved;
        self.cluster.collect_garbage(self.now);
        match self.rng.below(100) {
            0..50 => self.replica_steps(),
            50..79 => self.carry_out_one(),
            79 => self.tenant_steps(),
            80..92 => self.kubelet_steps(),
            92..95 => self.outsider_steps(),
            95..97 => {
                self.accept_one();
                self.client_steps();
            }
            _ => self.disturb(),
        }
    }

    /// Accepts the next submission, if there is one.
    fn accept_one(&mut self) {
        let Some(wanted) = self.plan.wanted.get(self.store.rows.len()).copied() else { return };
        self.accept(wanted);
    }

    fn accept(&mut self, wanted: Wanted) {
        let number = self.store.accept(wanted.limits, wanted.tenant, wanted.in_queue);
        if let Some(idle) = wanted.idle {
            self.store.open_session(number, idle);
            self.counts.add(Count::Session);
        }
        for _ in 0..NAMES {
            self.cluster.add(wanted.before, wanted.beside);
            self.truths.attempts.push(Attempt::default());
        }
        self.ids.push(format!("driver-20260101000000-{number:04}").parse().expect("an id"));
        let refused = wanted.refused != Refused::Nothing;
        self.retries_told.push(0);
        self.truths.submissions.push(Submission::new(refused, wanted.limits, wanted.tenant));
        self.counts.add(Count::Submission);
        self.say(|_| format!("row {number} accepted: {wanted:?}"));
        self.check(number);
    }

    /// Ends all faults, and restarts everything.
    fn settle(&mut self) {
        self.say(|_| "nothing disturbs any more".to_owned());
        while let Some(wanted) = self.plan.wanted.get(self.store.rows.len()).copied() {
            self.accept(wanted);
        }
        self.settling = true;
        self.plan.settle();
        self.links.heal();
        self.denied_until = 0;
        for replica in &mut self.replicas {
            replica.alive = true;
            replica.paused_until = 0;
        }
    }

    /// Returns what is still to be done.
    fn unsettled(&self) -> Option<String> {
        for (number, row) in self.store.rows.iter().enumerate() {
            if self.links.depends(self.truths.submissions[number].tenant) {
                continue;
            }
            if let Some(row) = row
                && !row.state.is_terminal()
            {
                return Some(format!("row {number} is {}", row.state));
            }
            let mut attempts = (1..=MOST_ATTEMPTS as i32).map(|attempt| name_of(number, attempt));
            if let Some(left) = attempts.find_map(|name| self.left_of(name)) {
                return Some(left);
            }
        }
        None
    }

    /// Returns what is left of an attempt whose submission has ended.
    fn left_of(&self, name: usize) -> Option<String> {
        let named = &self.cluster.names[name];
        let left = named.before.iter().flatten();
        let left = left.filter(|object| object.owner.is_none_or(|uid| self.cluster.pod(uid).is_none())).count();
        if left > 0 && !self.truths.attempts[name].may_leave_an_object {
            return Some(format!("an object that was made before the pod of attempt {name} is left"));
        }
        let pod =
            named.pod.as_ref().filter(|pod| matches!(pod.whose, Whose::Ours { .. }) && pod.labels == Some(name))?;
        let truth = self.truths.pods.get(pod.uid as usize)?;
        if truth.unsigned && (!truth.recorded || self.store.row(submission_of(name)).is_none()) {
            // It can't be distinguished from a forged pod: it stays, and can't start without its ConfigMap.
            return None;
        }
        let seen = pod.observation(|of| self.id_of(of), false)?;
        if seen.is_alive() || seen.deleting {
            return Some(format!("pod {} of attempt {name}, which has ended, is alive", pod.uid));
        }
        seen.holds_finalizer.then(|| format!("the finalizer on pod {} of attempt {name} is left", pod.uid))
    }

    /// Returns the id of the submission whose attempt has these names.
    pub(crate) fn id_of(&self, name: usize) -> SubmissionId {
        self.ids[submission_of(name)].clone()
    }

    /// Checks a row after it may have changed.
    pub(crate) fn check(&mut self, submission: usize) {
        match self.truths.check(&self.store, &self.cluster, self.plan.finalizer, submission) {
            Ok(ends) => {
                for state in ends {
                    self.counts.outcome(state);
                    self.say(|_| format!("an attempt of row {submission} has ended: {state}"));
                }
                self.count_retries(submission);
            }
            Err(wrong) => self.fail(wrong),
        }
    }

    fn count_retries(&mut self, submission: usize) {
        let Some(row) = self.store.row(submission) else { return };
        let kinds: Vec<_> = row.past[self.retries_told[submission]..].iter().map(|past| past.next).collect();
        let (tenant, last) = (row.tenant, row.attempt as usize == MOST_ATTEMPTS && !row.state.is_terminal());
        self.retries_told[submission] = row.past.len();
        for kind in &kinds {
            self.counts.add(match kind {
                Next::Budget(RetryKind::Infrastructure) => Count::RetriedInfrastructure,
                Next::Budget(RetryKind::Application) => Count::RetriedApplication,
                Next::Budget(RetryKind::Capacity) => Count::RetriedCapacity,
                Next::Budget(RetryKind::Quota) => Count::RetriedQuota,
                // No cluster of the simulation has Kueue.
                Next::Budget(RetryKind::Requeue) => continue,
                Next::Memory => Count::RetriedMemory,
                Next::Restart => Count::Restarted,
            });
        }
        if last && !kinds.is_empty() && self.plan.wanted[submission].limits.exceeds(MOST_ATTEMPTS) {
            self.say(|_| format!("row {submission} has had enough attempts, and its caller kills it"));
            self.counts.add(Count::Kill);
            self.store.request_kill(submission, tenant);
            self.truths.submissions[submission].is_killed(KillCause::Request);
            self.check(submission);
        }
    }

    pub(crate) fn fail(&mut self, wrong: String) {
        self.say(|_| format!("WRONG: {wrong}"));
        self.wrong.get_or_insert(wrong);
    }

    /// Adds a line to the history, if it is requested.
    pub(crate) fn say(&mut self, words: impl FnOnce(&Self) -> String) {
        let Some(mut told) = self.told.take() else { return };
        told.push(format!("{:>9.3} s  {}", (self.now - 1_000_000) as f64 / 1000.0, words(self)));
        self.told = Some(told);
    }
}
