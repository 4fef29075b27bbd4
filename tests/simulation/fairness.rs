//! Histories of queues with changing rules, returns of admitted submissions, and a tenant that is fifty times as loud as others.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::*;

/// Seconds.
type Time = u64;

const RESERVE_AFTER: Duration = Duration::from_secs(60);

/// Numbers that follow from a seed (xorshift).
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

#[derive(Debug, Clone)]
struct Job {
    number: i64,
    priority: i32,
    cost: Amounts,
    seconds: Time,
    since: Time,
}

/// A site: its rules, what runs, and what waits, as rows of a database would have it.
struct Site {
    now: Time,
    next: i64,
    capacity: Amounts,
    reserve_after: Duration,
    /// Nothing has changed since the last round that admitted nothing.
    is_settled: bool,
    rules: BTreeMap<String, Queue>,
    /// By queue and tenant, in their order.
    waiting: BTreeMap<(String, String), BTreeMap<i64, Job>>,
    /// With the time of its end.
    running: Vec<(Time, String, String, Job)>,
    /// How long each admitted submission waited, by tenant.
    waits: BTreeMap<String, Vec<Time>>,
    /// Seconds of cores by queue.
    core_seconds: BTreeMap<String, u64>,
}

impl Site {
    fn new(capacity: Amounts, rules: BTreeMap<String, Queue>) -> Self {
        Self {
            now: 0,
            next: 1,
            capacity,
            reserve_after: RESERVE_AFTER,
            is_settled: false,
            rules,
            waiting: BTreeMap::new(),
            running: Vec::new(),
            waits: BTreeMap::new(),
            core_seconds: BTreeMap::new(),
        }
    }

    fn submit(&mut self, queue: &str, tenant: &str, priority: i32, cost: Amounts, seconds: Time) {
        let job = Job { number: self.next, priority, cost, seconds, since: self.now };
        self.next += 1;
        self.queue_up(queue.to_owned(), tenant.to_owned(), job);
    }

    fn queue_up(&mut self, queue: String, tenant: String, job: Job) {
        self.is_settled = false;
        self.waiting.entry((queue, tenant)).or_default().insert(rank(job.number, job.priority), job);
    }

    /// As the statement reads it: of each tenant, the first few.
    fn snapshot(&self) -> Snapshot {
        const FIRST: usize = 8;
        let mut queues = self.rules.clone();
        for (_, queue, tenant, job) in &self.running {
            let tenant = queues.get_mut(queue).unwrap().tenants.entry(tenant.clone()).or_default();
            tenant.running.add(&job.cost);
        }
        for ((queue, tenant), jobs) in &self.waiting {
            let tenant = queues.get_mut(queue).unwrap().tenants.entry(tenant.clone()).or_default();
            tenant.waiting = jobs.values().take(FIRST).map(|job| self.candidate(job)).collect();
            tenant.has_more = jobs.len() > FIRST;
        }
        Snapshot { capacity: self.capacity.clone(), reserve_after: self.reserve_after, queues }
    }

    fn candidate(&self, job: &Job) -> Candidate {
        Candidate { number: job.number, cost: job.cost.clone(), waited: Duration::from_secs(self.now - job.since) }
    }

    fn used(&self, of: Option<&str>) -> Amounts {
        let mut used = Amounts::default();
        let jobs = self.running.iter().filter(|(_, queue, ..)| of.is_none_or(|of| of == queue));
        jobs.for_each(|(.., job)| used.add(&job.cost));
        used
    }

    /// Admits until nothing more fits, and checks the caps.
    fn admit(&mut self) {
        while !self.is_settled || self.now.is_multiple_of(10) {
            let before: BTreeMap<_, _> = self.rules.keys().map(|name| (name.clone(), self.used(Some(name)))).collect();
            let all_before = self.used(None);
            let round = decide(&self.snapshot(), 100);
            let numbers: BTreeSet<_> = round.admitted.iter().copied().collect();
            for ((queue, tenant), jobs) in &mut self.waiting {
                jobs.retain(|_, job| {
                    let is_admitted = numbers.contains(&job.number);
                    if is_admitted {
                        self.waits.entry(tenant.clone()).or_default().push(self.now - job.since);
                        self.running.push((self.now + job.seconds, queue.clone(), tenant.clone(), job.clone()));
                    }
                    !is_admitted
                });
            }
            let check = |caps: &Amounts, before: &Amounts, after: &Amounts| {
                for (resource, cap) in caps.iter() {
                    let (before, after) = (before.amount(resource), after.amount(resource));
                    assert!(after <= *cap || after == before, "{after} {resource} exceed {cap} at {}", self.now);
                }
            };
            self.rules.iter().for_each(|(name, rules)| check(&rules.caps, &before[name], &self.used(Some(name))));
            check(&self.capacity, &all_before, &self.used(None));
            self.is_settled = numbers.is_empty();
            if self.is_settled {
                return;
            }
        }
    }

    /// Lets a second pass.
    fn tick(&mut self) {
        for (_, queue, _, job) in &self.running {
            *self.core_seconds.entry(queue.clone()).or_default() += job.cost.amount(&Resource::Cores) / 1000;
        }
        self.now += 1;
        let now = self.now;
        let before = self.running.len();
        self.running.retain(|(end, ..)| *end > now);
        self.is_settled &= self.running.len() == before;
    }

    fn p99(&self, tenant: &str) -> Time {
        let mut waits = self.waits.get(tenant).cloned().unwrap_or_default();
        waits.sort_unstable();
        waits.get(waits.len() * 99 / 100).or_else(|| waits.last()).copied().unwrap_or_default()
    }

    fn backlog(&self, queue: &str) -> usize {
        self.waiting.iter().filter(|((of, _), _)| of == queue).map(|(_, jobs)| jobs.len()).sum()
    }
}

fn rules(weights: &[(&str, u32)]) -> BTreeMap<String, Queue> {
    weights.iter().map(|(name, weight)| ((*name).to_owned(), Queue { weight: *weight, ..Queue::default() })).collect()
}

/// Two queues with a backlog all the time, whose jobs have different sizes.
#[test]
fn an_hour_of_contention_is_shared_by_weight_within_five_percent() {
    for seed in 0..4 {
        let mut random = Random::new(seed);
        let weights = [("a", 1 + random.below(4) as u32), ("b", 1 + random.below(4) as u32), ("c", 1)];
        let mut site = Site::new(cores(200), rules(&weights));
        while site.now < 3600 + 900 {
            for (name, _) in weights {
                while site.backlog(name) < 20 {
                    let (size, seconds) = (1 + random.below(if name == "a" { 8 } else { 3 }), 20 + random.below(200));
                    let tenant = format!("{name}{}", random.below(3));
                    site.submit(name, &tenant, 0, cores(size), seconds);
                }
            }
            site.admit();
            if site.now == 900 {
                site.core_seconds.clear();
            }
            site.tick();
        }
        let (sum, all): (u64, u32) = (site.core_seconds.values().sum(), weights.iter().map(|(_, weight)| weight).sum());
        assert!(sum as f64 > 0.95 * 200.0 * 3600.0, "{sum} of the core seconds are used");
        for (name, weight) in weights {
            let (share, fair) = (site.core_seconds[name] as f64 / sum as f64, f64::from(weight) / f64::from(all));
            assert!((share - fair).abs() < 0.05 * fair, "queue {name} has {share:.3}, not {fair:.3} (seed {seed})");
        }
    }
}

/// Jobs: when each is submitted, its cores, and its seconds.
type Bursts = VecDeque<(Time, u64, Time)>;

/// The jobs of a quiet tenant: bursts of a few.
fn bursts(seed: u64, until: Time) -> Bursts {
    let mut random = Random::new(seed);
    let (mut at, mut jobs) = (0, VecDeque::new());
    while at < until {
        at += 300 + random.below(600);
        let burst = 1 + random.below(6);
        jobs.extend((0..burst).map(|_| (at, 1, 60 + random.below(120))));
    }
    jobs
}

fn play(site: &mut Site, mut quiet: Vec<(String, Bursts)>, loud: u64, until: Time) {
    while site.now < until {
        for (tenant, jobs) in &mut quiet {
            while let Some((_, size, seconds)) = jobs.pop_front_if(|(at, ..)| *at <= site.now) {
                site.submit("all", tenant, 0, cores(size), seconds);
            }
        }
        // The loud tenant always has a backlog of many small jobs.
        while loud > 0 && site.backlog("all") < 50 {
            site.submit("all", "loud", 0, cores(1), 30 + (site.next as u64 * 7) % 90);
        }
        site.admit();
        site.tick();
    }
}

/// Fifty tenants share a queue. Alone, each has its part of the capacity.
#[test]
fn a_loud_tenant_at_most_doubles_the_wait_of_the_others() {
    const UNTIL: Time = 2 * 3600;
    const TENANTS: u64 = 50;
    let quiet = |at: u64| (format!("t{at}"), bursts(at, UNTIL));
    let mut together = Site::new(cores(2 * TENANTS), rules(&[("all", 1)]));
    play(&mut together, (1..TENANTS).map(quiet).collect(), 1, UNTIL);
    let mut worst = (0, 0);
    for at in 1..TENANTS {
        let mut alone = Site::new(cores(2), rules(&[("all", 1)]));
        play(&mut alone, vec![quiet(at)], 0, UNTIL);
        let (with, without) = (together.p99(&format!("t{at}")), alone.p99(&format!("t{at}")));
        worst = worst.max((with, without));
        assert!(with <= 2 * without.max(30), "tenant t{at} waits {with} s, and {without} s alone");
    }
    assert!(together.waits["loud"].len() > 5000, "what the others leave is lent");
    println!("the longest p99 of a quiet tenant is {} s, and {} s alone", worst.0, worst.1);
}

/// A stream of small jobs of many tenants, and one that needs almost all.
#[test]
fn a_large_submission_is_not_overtaken_without_an_end() {
    let mut site = Site::new(cores(20), rules(&[("a", 1), ("b", 1)]));
    for tenant in 0..10 {
        (0..1000).for_each(|at| site.submit("a", &format!("t{tenant}"), 0, cores(1), 20 + (at * 13 + tenant) % 60));
    }
    site.submit("b", "large", 0, cores(19), 100);
    while !site.waits.contains_key("large") {
        site.admit();
        site.tick();
        assert!(site.now < 600, "it waits for {} s", site.now);
    }
}

/// Rules change, admitted submissions return, and queues pause, at any time. At the end all of it ran.
#[test]
fn no_history_exceeds_a_cap_or_starves_a_submission() {
    for seed in 0..50 {
        history(seed);
    }
}

fn history(seed: u64) {
    let mut random = Random::new(seed + 1000);
    let gpu = Resource::Extended("nvidia.com/gpu".to_owned());
    let capacity = cores(30).with(Resource::Memory, 100).with(gpu.clone(), 2);
    let mut site = Site::new(capacity, rules(&[("a", 1), ("b", 2), ("c", 5)]));
    let names = ["a", "b", "c"];
    let mut submitted = 0;
    for _ in 0..300 {
        for _ in 0..random.below(4) {
            let mut cost = cores(1 + random.below(6)).with(Resource::Memory, 1 + random.below(20));
            if random.one_in(5) {
                cost.set(gpu.clone(), 1);
            }
            let (queue, tenant) = (names[random.below(3) as usize], format!("t{}", random.below(5)));
            site.submit(queue, &tenant, random.below(3) as i32, cost, 1 + random.below(20));
            submitted += 1;
        }
        if random.one_in(10) {
            let name = names[random.below(3) as usize];
            let rules = site.rules.get_mut(name).unwrap();
            site.is_settled = false;
            rules.weight = 1 + random.below(5) as u32;
            rules.is_paused = random.one_in(3);
            rules.caps = if random.one_in(2) { cores(6 + random.below(10)) } else { Amounts::default() };
        }
        // A driver is lost, and its next attempt waits like any other.
        if random.one_in(10) && !site.running.is_empty() {
            let at = random.below(site.running.len() as u64) as usize;
            let (_, queue, tenant, job) = site.running.swap_remove(at);
            site.queue_up(queue, tenant, job);
            submitted += 1;
        }
        site.admit();
        site.tick();
    }
    site.is_settled = false;
    site.rules.values_mut().for_each(|rules| *rules = Queue { weight: rules.weight, ..Queue::default() });
    let end = site.now + 20_000;
    while site.waits.values().map(Vec::len).sum::<usize>() < submitted {
        site.admit();
        site.tick();
        assert!(site.now < end, "something starves with seed {seed}");
    }
}
