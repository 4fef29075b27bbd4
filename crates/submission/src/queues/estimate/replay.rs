//! A day of a company: how far estimates are from the waits.

use std::collections::BTreeMap;

use super::History;
use crate::queues::{Amounts, Candidate, Queue, Resource, Snapshot, decide};

/// Seconds.
type Time = u64;

const DAY: Time = 86_400;
/// As the statement reads them: of each tenant, the first that wait, and the last admissions.
const FIRST: usize = 32;
const OBSERVED: usize = 100;

/// Numbers that follow from a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    /// Returns a duration with this median, between an eighth of it and eight times it: short ones are frequent.
    fn seconds(&mut self, median: Time) -> Time {
        let scale = 2_f64.powf((self.below(3001) + self.below(3001)) as f64 / 1000.0 - 3.0);
        (median as f64 * scale) as Time + 1
    }
}

struct Job {
    at: Time,
    place: (&'static str, &'static str),
    cores: u64,
    seconds: Time,
}

/// Returns the jobs of a day: people in the office hours, a batch at each full hour, and a night of transformations.
fn jobs(seed: u64) -> Vec<Job> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut jobs = Vec::new();
    for hour in 0..24 {
        let people = if (8..18).contains(&hour) { 60 } else { 4 };
        for _ in 0..people {
            let tenant = ["analytics", "science"][random.below(2) as usize];
            let at = hour * 3600 + random.below(3600);
            jobs.push(Job {
                at,
                place: ("interactive", tenant),
                cores: 2 + random.below(6),
                seconds: random.seconds(300),
            });
        }
        for _ in 0..40 {
            let at = hour * 3600 + random.below(60);
            jobs.push(Job {
                at,
                place: ("hourly", "ingest"),
                cores: 2 + random.below(3),
                seconds: random.seconds(240),
            });
        }
        if (1..5).contains(&hour) {
            for _ in 0..80 {
                let tenant = ["finance", "ingest"][random.below(2) as usize];
                let at = hour * 3600 + random.below(300);
                jobs.push(Job {
                    at,
                    place: ("nightly", tenant),
                    cores: 4 + random.below(12),
                    seconds: random.seconds(600),
                });
            }
        }
    }
    jobs.sort_by_key(|job| job.at);
    jobs
}

/// An estimate at the time of acceptance, and what became of it.
struct Estimated {
    seconds: f64,
    error: f64,
    waited: f64,
}

/// Returns the history that the statement reads: times between admissions of which the later one had waited during all of it.
fn history(admissions: &[(Time, Time)], now: Time, waiting_since: Time) -> History {
    let last = &admissions[admissions.len().saturating_sub(OBSERVED)..];
    let gaps: Vec<f64> = last
        .windows(2)
        .filter(|pair| pair[1].1 >= pair[1].0 - pair[0].0)
        .map(|pair| (pair[1].0 - pair[0].0) as f64)
        .collect();
    let (count, sum) = (gaps.len() as f64, gaps.iter().sum::<f64>());
    let mean = sum / count.max(1.0);
    let squares: f64 = gaps.iter().map(|gap| (gap - mean).powi(2)).sum();
    let since_last = last.last().map_or(0, |(at, _)| (now - at).min(now - waiting_since)) as f64;
    History {
        admissions: gaps.len() as u32,
        seconds: sum + since_last,
        deviation: (squares / (count - 1.0).max(1.0)).sqrt(),
        age: last.first().map_or(0, |(at, _)| now - at) as f64,
    }
}

/// Plays days one after the other, and returns the estimates of the last one, and how many of its submissions that waited had none.
fn play(seed: u64, days: u64) -> (Vec<Estimated>, usize) {
    let cores = |amount: u64| Amounts::default().with(Resource::Cores, amount);
    let rules = [("interactive", 3), ("hourly", 2), ("nightly", 1)];
    let mut waiting: BTreeMap<(&str, &str), Vec<(usize, Time)>> = BTreeMap::new();
    let mut admissions: BTreeMap<(&str, &str), Vec<(Time, Time)>> = BTreeMap::new();
    let mut running: Vec<(Time, usize)> = Vec::new();
    let mut promised: BTreeMap<usize, Option<(f64, f64)>> = BTreeMap::new();
    let (mut estimated, mut without) = (Vec::new(), 0);
    let all: Vec<Job> = (0..days)
        .flat_map(|day| jobs(seed * 100 + day).into_iter().map(move |job| Job { at: job.at + day * DAY, ..job }))
        .collect();
    let mut next = 0;
    let mut now = 0;
    while next < all.len() || !running.is_empty() {
        running.retain(|(end, _)| *end > now);
        while let Some(job) = all.get(next).filter(|job| job.at <= now) {
            let line = waiting.entry(job.place).or_default();
            let known = admissions.get(&job.place).map(Vec::as_slice).unwrap_or_default();
            let since = line.first().map_or(now, |(_, since)| *since);
            promised.insert(next, history(known, now, since).estimate(line.len() as u32));
            line.push((next, now));
            next += 1;
        }
        loop {
            let mut queues: BTreeMap<String, Queue> = rules
                .iter()
                .map(|(name, weight)| ((*name).to_owned(), Queue { weight: *weight, ..Queue::default() }))
                .collect();
            let mut tenant = |place: &(&str, &str), change: &mut dyn FnMut(&mut crate::queues::Tenant)| {
                let queue = queues.entry(place.0.to_owned()).or_default();
                change(queue.tenants.entry(place.1.to_owned()).or_default());
            };
            for (_, job) in &running {
                tenant(&all[*job].place, &mut |tenant| tenant.running.add(&cores(all[*job].cores)));
            }
            for (place, line) in &waiting {
                let of = |(job, since): &(usize, Time)| Candidate {
                    number: *job as i64,
                    cost: cores(all[*job].cores),
                    waited: std::time::Duration::from_secs(now - since),
                };
                tenant(place, &mut |tenant| {
                    tenant.waiting = line.iter().take(FIRST).map(of).collect();
                    tenant.has_more = line.len() > FIRST;
                });
            }
            let reserve_after = std::time::Duration::from_secs(60);
            let round = decide(&Snapshot { capacity: cores(160), reserve_after, queues }, 200);
            if round.admitted.is_empty() {
                break;
            }
            for number in round.admitted {
                let job = number as usize;
                let line = waiting.get_mut(&all[job].place).unwrap();
                let (_, since) = line.remove(line.iter().position(|(of, _)| *of == job).unwrap());
                running.push((now + all[job].seconds, job));
                admissions.entry(all[job].place).or_default().push((now, now - since));
                let waited = (now - since) as f64;
                // The others are admitted at once, before an estimate of them is read.
                if all[job].at >= (days - 1) * DAY && waited >= 5.0 {
                    match promised[&job] {
                        Some((seconds, error)) => estimated.push(Estimated { seconds, error, waited }),
                        None => without += 1,
                    }
                }
            }
        }
        let arrival = all.get(next).map(|job| job.at);
        let end = running.iter().map(|(end, _)| *end).min();
        // What waits for room that is kept free looks again after a while.
        let again = waiting.values().any(|line| !line.is_empty()).then_some(now + 10);
        let Some(then) = [arrival, end, again].into_iter().flatten().min() else { break };
        now = then.max(now + 1);
    }
    (estimated, without)
}

fn at(mut all: Vec<f64>, part: f64) -> f64 {
    all.sort_by(f64::total_cmp);
    all[((all.len() - 1) as f64 * part) as usize]
}

/// The numbers of docs/operate/access.md.
#[test]
fn estimates_of_a_day_are_near_the_waits() {
    let (mut all, mut none) = (Vec::new(), 0);
    for seed in 1..=5 {
        let (estimated, without) = play(seed, 2);
        all.extend(estimated);
        none += without;
    }
    let off: Vec<f64> = all.iter().map(|one| (one.seconds - one.waited).abs()).collect();
    let parts: Vec<f64> = all.iter().map(|one| (one.seconds - one.waited).abs() / one.waited).collect();
    let within = |errors: f64| {
        let count = all.iter().filter(|one| (one.seconds - one.waited).abs() <= errors * one.error).count();
        100.0 * count as f64 / all.len() as f64
    };
    let waits: Vec<f64> = all.iter().map(|one| one.waited).collect();
    eprintln!(
        "{} estimates, {none} submissions without one; waits: median {:.0} s, p90 {:.0} s; error: median {:.0} s ({:.0} %), p90 {:.0} s \
         ({:.0} %); within one published error {:.0} %, within two {:.0} %",
        all.len(),
        at(waits.clone(), 0.5),
        at(waits, 0.9),
        at(off.clone(), 0.5),
        100.0 * at(parts.clone(), 0.5),
        at(off, 0.9),
        100.0 * at(parts.clone(), 0.9),
        within(1.0),
        within(2.0),
    );
    assert!(all.len() > 1000, "{} estimates", all.len());
    assert!(at(parts, 0.5) < 0.5, "half of the estimates are within half of the wait");
    assert!(within(2.0) > 60.0, "the published error holds");
}
