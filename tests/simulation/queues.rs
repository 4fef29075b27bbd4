//! Queues: the access file and its changes, callers who hold and pause, and what must hold of admissions.

use sparkgate::submission::queues::{Amounts, Resource};

use crate::{
    counts::Count,
    links::Lasting,
    plan::TENANTS,
    rng::Rng,
    store::{Picks, QUEUES, Session},
    wire::Told,
    world::World,
};

/// The most cores that a submission costs.
pub(crate) const LARGEST: u64 = 4;

/// A queue of the access file.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) weight: u32,
    pub(crate) cores: Option<u64>,
    pub(crate) submissions: Option<u64>,
}

impl Known {
    pub(crate) fn caps(&self) -> Amounts {
        let cores = self.cores.map(|cap| (Resource::Cores, cap));
        let submissions = self.submissions.map(|cap| (Resource::Submissions, cap));
        cores.into_iter().chain(submissions).collect()
    }
}

/// What the access file says of queues.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// `None` for a queue that was removed from the file.
    pub(crate) queues: [Option<Known>; QUEUES],
    pub(crate) capacity: Option<u64>,
}

impl Rules {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let queues = [(); QUEUES].map(|()| {
            (!rng.chance(100)).then(|| Known {
                weight: 1 + rng.below(4) as u32,
                // Lower than the largest submission, sometimes.
                cores: rng.chance(600).then(|| 1 + rng.below(2 * LARGEST)),
                submissions: rng.chance(300).then(|| 1 + rng.below(3)),
            })
        });
        Self { queues, capacity: rng.chance(600).then(|| LARGEST + rng.below(6)) }
    }

    /// Returns the most cores that a submission of each queue may cost.
    pub(crate) fn largest(&self) -> [Option<u64>; QUEUES] {
        let of_queue = |known: &Option<Known>| known.as_ref().map(|known| [known.cores, self.capacity].into_iter());
        [0, 1].map(|at| of_queue(&self.queues[at])?.flatten().min())
    }
}

impl World {
    /// Changes the access file, or the state of a queue.
    pub(crate) fn operator_steps(&mut self) {
        if self.rules.is_empty() {
            return;
        }
        if self.rng.chance(self.plan.rules * 10) {
            let rules = Rules::draw(&mut self.rng);
            self.say(|_| format!("the access file changes: {rules:?}"));
            self.counts.add(Count::FileChanged);
            let used = [0, 1].map(|queue| self.used(|at| at == queue).0);
            let lowered =
                |at: usize| rules.queues[at].as_ref().and_then(|known| known.cores).is_some_and(|cap| cap < used[at]);
            if (0..QUEUES).any(lowered) {
                self.counts.add(Count::CapLowered);
            }
            self.rules.push(rules);
        }
        if self.rng.chance(self.plan.hold * 10) {
            let queue = self.rng.below(QUEUES as u64) as usize;
            self.store.paused[queue] = self.rng.chance(300);
            self.say(|world| format!("queue {queue} is paused: {}", world.store.paused[queue]));
        }
    }

    /// Lets a caller of a tenant hold or release a submission.
    pub(crate) fn hold_steps(&mut self, number: usize, tenant: usize) {
        if !self.rng.chance(self.plan.hold * 20) {
            return;
        }
        let is_own = self.truths.submissions[number].tenant == tenant;
        let holds = self.rng.chance(400);
        let changed = if holds { self.store.hold(number, tenant) } else { self.store.release_held(number, tenant) };
        if changed {
            self.say(|_| format!("a caller of tenant {tenant} holds row {number}: {holds}"));
            self.counts.add(if holds { Count::Held } else { Count::Released });
        }
        if changed && !is_own {
            self.fail(format!("a caller of tenant {tenant} held or released row {number}"));
        }
        self.check(number);
    }

    /// Returns how many cores and submissions are admitted in these queues.
    fn used(&self, of: impl Fn(usize) -> bool) -> (u64, u64) {
        let rows = self.store.rows.iter().flatten().filter(|row| !row.state.is_terminal());
        // Whatever isn't known to wait may run.
        let admitted =
            rows.filter(|row| !row.held && row.place.is_some_and(|place| !place.ranked && of(place.of.queue)));
        admitted.filter_map(|row| row.place).fold((0, 0), |(cores, count), place| (cores + place.of.cores, count + 1))
    }

    /// Carries an admission out. Nothing is admitted beyond a cap of the file by which the replica decided.
    pub(crate) fn admit(&mut self, session: Session, file: usize, version: u64, picks: &Picks) -> Told {
        let (links, now) = (self.links.clone(), self.now);
        let before = [0, 1].map(|queue| self.used(|at| at == queue));
        let all_before = self.used(|_| true).0;
        let admitted = self.store.admit(session, version, picks, |tenant| links.is_locked(tenant, now));
        let rules = self.rules[file].clone();
        for queue in 0..QUEUES {
            let (cores, count) = self.used(|at| at == queue);
            let Some(known) = &rules.queues[queue] else { continue };
            let over = |cap: Option<u64>, before: u64, after: u64| cap.is_some_and(|cap| after > cap && after > before);
            if over(known.cores, before[queue].0, cores) || over(known.submissions, before[queue].1, count) {
                self.fail(format!("{cores} cores and {count} submissions of queue {queue} are admitted: {known:?}"));
            }
        }
        let all = self.used(|_| true).0;
        if rules.capacity.is_some_and(|capacity| all > capacity && all > all_before) {
            self.fail(format!("{all} cores are admitted, of a capacity of {:?}", rules.capacity));
        }
        for number in admitted.iter().flatten() {
            self.counts.add(Count::Admitted);
            self.check(*number);
        }
        Told::Admitted(admitted)
    }

    /// Lets everything be admitted that doesn't depend on what lasts, one after the other: the caps have room for the largest submission
    /// beside those that may take their places for as long as it lasts.
    pub(crate) fn settle_queues(&mut self) {
        for number in 0..self.store.rows.len() {
            let held = |tenant| self.store.release_held(number, tenant as usize);
            if (0..TENANTS).any(held) {
                self.check(number);
            }
        }
        if self.rules.is_empty() {
            return;
        }
        self.store.paused = [false; QUEUES];
        let taken: u64 = match self.links.lasting {
            Some(Lasting::Tenant { tenant: bad, .. }) => {
                let rows = self.store.rows.iter().flatten().filter(|row| row.tenant == bad);
                rows.filter_map(|row| row.place).map(|place| place.of.cores).sum()
            }
            _ => 0,
        };
        // Those that run already may use more.
        let cap = Some(taken + LARGEST);
        let queues = [(); QUEUES].map(|()| Some(Known { weight: 1, cores: cap, submissions: None }));
        let rules = Rules { queues, capacity: cap };
        self.say(|_| format!("the access file settles: {rules:?}"));
        self.rules.push(rules);
    }

    /// Checks that a driver starts only after its admission.
    pub(crate) fn check_admission(&mut self, number: usize, attempt: i32) {
        let waits = self.store.row(number).is_some_and(|row| row.attempt == attempt && row.waits());
        if waits {
            self.fail(format!("the driver of row {number} starts, and it waits for its admission or is held"));
        }
    }
}
