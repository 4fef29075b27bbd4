//! Hours of a site with queues, decided by the gateway's own rule: shares, waits beside a tenant that is fifty times as loud as others, and
//! changes of the rules at any time. The engine has no part in them.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::Duration,
};

use sparkgate::submission::queues::{Amounts, Candidate, Queue, Resource, Snapshot, decide, rank};

use crate::rng::Rng;

/// Seconds.
type Time = u64;

const RESERVE_AFTER: Duration = Duration::from_secs(60);
const HOUR: Time = 3600;
const TENANTS: u64 = 50;
/// How many submissions the loud tenant makes for one of another tenant.
const LOUD: usize = 50;

fn cores(count: u64) -> Amounts {
    Amounts::default().with(Resource::Cores, count * 1000)
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
    /// Seconds of cores of each minute, by queue and tenant.
    core_seconds: BTreeMap<(String, String), Vec<u64>>,
    /// The last admission of each tenant in a queue.
    admissions: BTreeMap<(String, String), Time>,
    wrong: Option<String>,
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
            admissions: BTreeMap::new(),
            wrong: None,
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
            let tenant = queues.entry(queue.clone()).or_default().tenants.entry(tenant.clone()).or_default();
            tenant.running.add(&job.cost);
        }
        for ((queue, name), jobs) in &self.waiting {
            let tenant = queues.entry(queue.clone()).or_default().tenants.entry(name.clone()).or_default();
            tenant.waiting = jobs.values().take(FIRST).map(|job| self.candidate(job)).collect();
            tenant.has_more = jobs.len() > FIRST;
            let last = self.admissions.get(&(queue.clone(), name.clone()));
            tenant.since_admission = last.map(|last| Duration::from_secs(self.now - last));
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
                        let end = self.now + job.seconds;
                        self.admissions.insert((queue.clone(), tenant.clone()), self.now);
                        let minutes = self.core_seconds.entry((queue.clone(), tenant.clone())).or_default();
                        minutes.resize(minutes.len().max((end / 60) as usize + 1), 0);
                        let cores = job.cost.amount(&Resource::Cores) / 1000;
                        (self.now..end).for_each(|second| minutes[(second / 60) as usize] += cores);
                        self.running.push((self.now + job.seconds, queue.clone(), tenant.clone(), job.clone()));
                    }
                    !is_admitted
                });
            }
            let over = |caps: &Amounts, before: &Amounts, after: &Amounts| {
                let exceeds = |resource, cap| {
                    let (before, after) = (before.amount(resource), after.amount(resource));
                    after > cap && after != before
                };
                let found = caps.iter().find(|(resource, cap)| exceeds(resource, **cap));
                found.map(|(resource, cap)| format!("more than {cap} {resource} are admitted after {} s", self.now))
            };
            let of_queues =
                self.rules.iter().map(|(name, rules)| over(&rules.caps, &before[name], &self.used(Some(name))));
            let wrong = of_queues.chain([over(&self.capacity, &all_before, &self.used(None))]).flatten().next();
            self.wrong = self.wrong.take().or(wrong);
            self.is_settled = numbers.is_empty();
            if self.is_settled {
                return;
            }
        }
    }

    /// Lets a second pass.
    fn tick(&mut self) {
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

    fn backlog(&self, queue: &str, tenant: &str) -> usize {
        self.waiting.get(&(queue.to_owned(), tenant.to_owned())).map_or(0, BTreeMap::len)
    }

    /// Returns the core-seconds of each hour that begins with a minute after `from`, of a queue or of a tenant in it.
    fn hours(&self, from: Time, of: impl Fn(&str, &str) -> bool) -> Vec<u64> {
        let minutes = (self.now / 60) as usize;
        let mut sums = vec![0; minutes];
        for ((queue, tenant), each) in &self.core_seconds {
            if of(queue, tenant) {
                each.iter().zip(&mut sums).for_each(|(seconds, sum)| *sum += seconds);
            }
        }
        sums[(from / 60) as usize..].windows(60).map(|hour| hour.iter().sum()).collect()
    }
}

fn rules(weights: &[(String, u32)]) -> BTreeMap<String, Queue> {
    weights.iter().map(|(name, weight)| (name.clone(), Queue { weight: *weight, ..Queue::default() })).collect()
}

/// Draws three queues with weights, and the queue of each tenant.
fn draw(rng: &mut Rng) -> (Vec<(String, u32)>, Vec<usize>) {
    let queues = (0..3).map(|at| (format!("q{at}"), 1 + rng.below(4) as u32)).collect();
    // Each queue has some.
    let of_tenants = (0..TENANTS).map(|tenant| if tenant < 3 { tenant as usize } else { rng.below(3) as usize });
    (queues, of_tenants.collect())
}

/// What was measured; larger is worse.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Measured {
    /// By how much the share of a queue, in any hour of contention, was beside its weight, in thousandths of it.
    pub(crate) of_queue: u64,
    /// The same of tenants, which share a queue equally.
    pub(crate) of_tenant: u64,
    /// The longest p99 wait of a tenant beside the loud one, in seconds.
    pub(crate) beside: Time,
    /// The p99 wait of the same tenant if it has its part of the capacity alone.
    pub(crate) alone: Time,
    /// The largest ratio of the two.
    pub(crate) ratio: f64,
    /// How many jobs of the loud tenant were admitted nevertheless.
    pub(crate) lent: usize,
}

/// Plays an hour and more with a backlog of each tenant, the loud one's being fifty times as large.
pub(crate) fn contention(seed: u64) -> Result<Measured, String> {
    const CAPACITY: u64 = 500;
    const FROM: Time = 900;
    let mut rng = Rng::new(seed);
    let (queues, of_tenants) = draw(&mut rng);
    let loud = rng.below(TENANTS) as usize;
    let mut site = Site::new(cores(CAPACITY), rules(&queues));
    while site.now < FROM + 2 * HOUR {
        for (tenant, queue) in of_tenants.iter().enumerate() {
            let (backlog, name) = (if tenant == loud { 3 * LOUD } else { 3 }, format!("t{tenant}"));
            let queue = &queues[*queue].0;
            while site.backlog(queue, &name) < backlog {
                let (size, seconds) = (1 + rng.below(2), 10 + rng.below(40));
                site.submit(queue, &name, 0, cores(size), seconds);
            }
        }
        site.admit();
        site.tick();
    }
    let mut measured = Measured::default();
    let all = site.hours(FROM, |_, _| true);
    let beside = |share: f64, fair: f64| ((share - fair).abs() / fair * 1000.0) as u64;
    let weights: u32 = queues.iter().map(|(_, weight)| weight).sum();
    for (at, (queue, weight)) in queues.iter().enumerate() {
        let fair = f64::from(*weight) / f64::from(weights);
        for (hour, all) in site.hours(FROM, |of, _| of == queue).into_iter().zip(&all) {
            measured.of_queue = measured.of_queue.max(beside(hour as f64 / *all as f64, fair));
        }
        let tenants: Vec<_> =
            (0..).zip(&of_tenants).filter(|(_, queue)| **queue == at).map(|(tenant, _)| tenant).collect();
        let fair = fair / tenants.len() as f64;
        for tenant in tenants {
            let name = format!("t{tenant}");
            for (hour, all) in site.hours(FROM, |of, tenant| of == queue && tenant == name).into_iter().zip(&all) {
                measured.of_tenant = measured.of_tenant.max(beside(hour as f64 / *all as f64, fair));
            }
        }
    }
    let idle = all.iter().any(|all| *all < CAPACITY * HOUR * 97 / 100);
    match site.wrong {
        Some(wrong) => Err(wrong),
        None if idle => Err("more than 3 % of an hour's capacity is idle".to_owned()),
        None if measured.of_queue > 50 || measured.of_tenant > 100 => {
            Err(format!("shares are beside their weights: {measured:?}"))
        }
        None => Ok(measured),
    }
}

/// Plays hours of one queue that has a place for one in five tenants. Returns by how much a tenant is beside its equal share, in thousandths.
pub(crate) fn few_places(seed: u64) -> Result<u64, String> {
    const PLACES: u64 = TENANTS / 5;
    let mut rng = Rng::new(seed);
    let mut site = Site::new(cores(PLACES), rules(&[("all".to_owned(), 1)]));
    while site.now < 4 * HOUR {
        for tenant in 0..TENANTS {
            let (backlog, name) = (if tenant == 0 { LOUD } else { 1 }, format!("t{tenant}"));
            while site.backlog("all", &name) < backlog {
                site.submit("all", &name, 0, cores(1), 10 + rng.below(20));
            }
        }
        site.admit();
        site.tick();
    }
    let fair = PLACES * 4 * HOUR / TENANTS;
    let beside = (0..TENANTS).map(|tenant| {
        let name = format!("t{tenant}");
        let used: u64 = site.core_seconds.get(&("all".to_owned(), name)).into_iter().flatten().sum();
        used.abs_diff(fair) * 1000 / fair
    });
    let most = beside.max().unwrap_or_default();
    if most > 100 { Err(format!("a tenant is {most} thousandths beside its share, with few places")) } else { Ok(most) }
}

/// Jobs: when each is submitted, its cores, and its seconds.
type Bursts = VecDeque<(Time, u64, Time)>;

/// Returns the jobs of a quiet tenant: bursts of a few.
fn bursts(seed: u64, until: Time) -> Bursts {
    let mut rng = Rng::new(seed);
    let (mut at, mut jobs) = (0, VecDeque::new());
    while at < until {
        at += 300 + rng.below(600);
        let burst = 1 + rng.below(6);
        jobs.extend((0..burst).map(|_| (at, 1, 60 + rng.below(120))));
    }
    jobs
}

struct Quiet {
    queue: String,
    tenant: String,
    jobs: Bursts,
}

fn play(site: &mut Site, quiet: &mut [Quiet], loud: Option<&str>, until: Time) {
    while site.now < until {
        for Quiet { queue, tenant, jobs } in quiet.iter_mut() {
            while let Some((_, size, seconds)) = jobs.pop_front_if(|(at, ..)| *at <= site.now) {
                site.submit(queue, tenant, 0, cores(size), seconds);
            }
        }
        // The loud tenant always has a backlog of many small jobs.
        while let Some(queue) = loud.filter(|queue| site.backlog(queue, "loud") < LOUD) {
            site.submit(queue, "loud", 0, cores(1), 30 + (site.next as u64 * 7) % 90);
        }
        site.admit();
        site.tick();
    }
}

/// Plays two hours of tenants with bursts of work, beside one that always has more of it. Alone, each has its part of the capacity.
pub(crate) fn beside_a_loud_tenant(seed: u64) -> Result<Measured, String> {
    const UNTIL: Time = 2 * HOUR;
    let mut rng = Rng::new(seed);
    let (queues, of_tenants) = draw(&mut rng);
    let weights: u64 = queues.iter().map(|(_, weight)| u64::from(*weight)).sum();
    let count = |queue| of_tenants.iter().filter(|of| **of == queue).count() as u64;
    // Each tenant has two cores as its part at least.
    let capacity = (0..queues.len()).map(|at| 2 * count(at) * weights / u64::from(queues[at].1)).max().unwrap_or(1);
    let quiet = |tenant: usize| Quiet {
        queue: queues[of_tenants[tenant]].0.clone(),
        tenant: format!("t{tenant}"),
        jobs: bursts(seed ^ (tenant as u64) << 40, UNTIL),
    };
    let mut together = Site::new(cores(capacity), rules(&queues));
    let mut all: Vec<_> = (1..of_tenants.len()).map(quiet).collect();
    play(&mut together, &mut all, Some(&queues[of_tenants[0]].0), UNTIL);
    let mut measured = Measured { lent: together.waits["loud"].len(), ..Measured::default() };
    for (tenant, &queue) in of_tenants.iter().enumerate().skip(1) {
        let name = format!("t{tenant}");
        let part = capacity * u64::from(queues[queue].1) / weights / count(queue);
        let mut alone = Site::new(cores(part.max(1)), rules(&queues));
        play(&mut alone, &mut [quiet(tenant)], None, UNTIL);
        let (beside, alone) = (together.p99(&name), alone.p99(&name));
        measured.ratio = measured.ratio.max(beside as f64 / alone.max(1) as f64);
        if beside > measured.beside {
            (measured.beside, measured.alone) = (beside, alone);
        }
        // A place of the loud tenant becomes free within two seconds, on the average.
        if beside > 2 * alone.max(30) {
            return Err(format!("tenant {name} waits {beside} s, and {alone} s alone"));
        }
    }
    match together.wrong {
        Some(wrong) => Err(wrong),
        None if measured.lent < 1000 => Err(format!("what the others leave is not lent: {measured:?}")),
        None => Ok(measured),
    }
}

/// Changes rules, ends admitted submissions and queues them again, and pauses queues, at any time. At the end all of them ran.
pub(crate) fn changes(seed: u64) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let gpu = Resource::Extended("nvidia.com/gpu".to_owned());
    let capacity = cores(30).with(Resource::Memory, 100).with(gpu.clone(), 2);
    let names = ["a", "b", "c"];
    let mut site = Site::new(capacity, rules(&[("a".to_owned(), 1), ("b".to_owned(), 2), ("c".to_owned(), 5)]));
    let mut submitted = 0;
    for _ in 0..rng.pick(&[30, 100, 300]) {
        for _ in 0..rng.below(4) {
            let mut cost = cores(1 + rng.below(6)).with(Resource::Memory, 1 + rng.below(20));
            if rng.chance(200) {
                cost.set(gpu.clone(), 1);
            }
            let (queue, tenant) = (rng.pick(&names), format!("t{}", rng.below(5)));
            site.submit(queue, &tenant, rng.below(3) as i32, cost, 1 + rng.below(20));
            submitted += 1;
        }
        if rng.chance(100)
            && let Some(rules) = site.rules.get_mut(rng.pick(&names))
        {
            site.is_settled = false;
            rules.weight = 1 + rng.below(5) as u32;
            rules.is_paused = rng.chance(300);
            rules.caps = if rng.chance(500) { cores(6 + rng.below(10)) } else { Amounts::default() };
        }
        // A driver is lost, and its next attempt waits like any other.
        if rng.chance(100)
            && let Some(at) = rng.place(site.running.len())
        {
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
        if site.now > end {
            return Err("something starves".to_owned());
        }
    }
    site.wrong.map_or(Ok(()), Err)
}

/// Plays a stream of small jobs of many tenants, and a job that needs almost all. Returns how long it waits.
pub(crate) fn a_large_one_among_many(seed: u64) -> Result<Time, String> {
    let mut rng = Rng::new(seed);
    let mut site = Site::new(cores(20), rules(&[("a".to_owned(), 1), ("b".to_owned(), 1)]));
    for tenant in 0..10 {
        (0..300).for_each(|_| site.submit("a", &format!("t{tenant}"), 0, cores(1), 20 + rng.below(60)));
    }
    // The others use all of it.
    while site.now < 30 {
        site.admit();
        site.tick();
    }
    site.submit("b", "large", 0, cores(19), 100);
    while !site.waits.contains_key("large") {
        site.admit();
        site.tick();
        if site.now > 600 {
            return Err(format!("the large submission waits for {} s", site.now));
        }
    }
    Ok(site.p99("large"))
}

/// The worst of many hours, as a table.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hours {
    played: u64,
    changes: u64,
    worst: Measured,
    large: Time,
    few: u64,
}

impl Hours {
    /// Plays as many hours of contention and beside a loud tenant, and a hundred times as many changes.
    pub(crate) fn play(first: u64, hours: u64) -> Result<Self, String> {
        let mut all = Self { played: hours, changes: hours * 100, ..Self::default() };
        for seed in (0..hours).map(|at| first.wrapping_add(at)) {
            let of_seed = |wrong: String| format!("hour {seed}: {wrong}");
            let (shares, waits) = (contention(seed).map_err(of_seed)?, beside_a_loud_tenant(seed).map_err(of_seed)?);
            all.few = all.few.max(few_places(seed).map_err(of_seed)?);
            all.large = all.large.max(a_large_one_among_many(seed).map_err(of_seed)?);
            let worst = &mut all.worst;
            worst.of_queue = worst.of_queue.max(shares.of_queue);
            worst.of_tenant = worst.of_tenant.max(shares.of_tenant);
            worst.ratio = worst.ratio.max(waits.ratio);
            if waits.beside > worst.beside {
                (worst.beside, worst.alone) = (waits.beside, waits.alone);
            }
            for at in 0..100 {
                changes(seed.wrapping_mul(100).wrapping_add(at)).map_err(of_seed)?;
            }
        }
        Ok(all)
    }

    pub(crate) fn table(&self) -> String {
        let Measured { of_queue, of_tenant, beside, alone, ratio, .. } = self.worst;
        let percent = |thousandths: u64| format!("{:.1} %", thousandths as f64 / 10.0);
        let rows = [
            ("hours of 50 tenants, one fifty times as loud", self.played.to_string()),
            ("shares of queues beside their weights, at most", percent(of_queue)),
            ("shares of tenants beside equal ones, at most", percent(of_tenant)),
            ("\u{2026}with a place for one in five, at most", percent(self.few)),
            ("p99 wait beside the loud tenant, the longest", format!("{beside} s")),
            ("\u{2026}of the same tenant alone", format!("{alone} s")),
            ("p99 wait beside it, in those alone, at most", format!("{ratio:.2}")),
            ("wait of a submission that needs 95 %, at most", format!("{} s", self.large)),
            ("histories of changes of the rules", self.changes.to_string()),
        ];
        rows.map(|(what, value)| format!("{what:<52} {value:>14}\n")).concat()
    }
}
