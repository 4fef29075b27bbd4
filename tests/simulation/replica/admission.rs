//! Rounds of admissions, as `crates/queues/src/admission.rs` runs them under their lease, with the decision of the gateway itself.

use std::{collections::BTreeMap, time::Duration};

use sparkgate::submission::queues::{Amounts, Candidate, Queue, Resource, Snapshot, Tenant, WaitReason, decide};

use crate::{
    counts::Count,
    flaw::Flaw,
    queues::Rules,
    store::{LeaseName, Picks, QueueRound, Time},
    wire::{Ask, Told, Waiting},
    world::World,
};

/// All of these are smaller than in the gateway, because histories are short.
const PERIOD: Time = 200;
const PATIENCE: Time = 1_000;
const HEADS: usize = 2;
const ADMITTED_AT_ONCE: usize = 2;
const RESERVE_AFTER: Duration = Duration::from_millis(800);
const SET_ASIDE: Time = 2_000;

/// The work of a replica on admissions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds {
    /// The version of the access file that it has loaded.
    pub(crate) file: usize,
    lease_at: Time,
    at: Time,
    request: Option<u64>,
    picks: Picks,
    /// Submissions that were picked and couldn't be admitted, and until when others are picked in their place.
    set_aside: BTreeMap<usize, Time>,
}

impl World {
    pub(super) fn admission_steps(&mut self, at: usize) {
        if self.rules.is_empty() {
            return;
        }
        let (now, newest) = (self.now, self.rules.len() - 1);
        if self.settling || self.rng.chance(200) {
            self.replicas[at].rounds.file = newest;
        }
        let replica = &mut self.replicas[at];
        if !replica.believes_in_its_lease(now) || replica.stopping {
            return;
        }
        if !replica.held.contains(&LeaseName::Queues) {
            if now >= replica.rounds.lease_at {
                replica.rounds.lease_at = now + 1_000;
                self.send(at, Waiting::Queues, Ask::Acquire(LeaseName::Queues));
            }
        } else if now >= replica.rounds.at {
            replica.rounds.at = now + PATIENCE;
            replica.rounds.set_aside.retain(|_, until| *until > now);
            let set_aside = replica.rounds.set_aside.keys().copied().collect();
            let file = replica.rounds.file;
            let largest = self.rules[file].largest();
            let request = self.send(at, Waiting::Round, Ask::ReadQueues { heads: HEADS, largest, set_aside });
            self.replicas[at].rounds.request = Some(request);
        }
    }

    pub(super) fn hear_of_round(&mut self, at: usize, request: u64, told: Told) {
        let now = self.now;
        let rounds = &mut self.replicas[at].rounds;
        if rounds.request != Some(request) {
            return;
        }
        rounds.request = None;
        rounds.at = now + PERIOD;
        match told {
            Told::Round(round) => {
                let (file, snapshot) = (rounds.file, snapshot(&self.rules[rounds.file], &round));
                let decision = decide(&snapshot, ADMITTED_AT_ONCE);
                let reserved = |reason: &WaitReason| matches!(reason, WaitReason::Reserved { .. });
                if decision.waiting.values().any(reserved) {
                    self.counts.add(Count::RoomKept);
                }
                let attempts = round.places.iter().flatten().flat_map(|place| &place.waiting);
                let attempts: BTreeMap<_, _> = attempts.map(|head| (head.submission, head.attempt)).collect();
                let numbers = decision.admitted.iter().map(|number| *number as usize);
                let picks: Picks = numbers.map(|number| (number, attempts[&number])).collect();
                if !picks.is_empty() {
                    self.replicas[at].rounds.at = now + PATIENCE;
                    self.replicas[at].rounds.picks.clone_from(&picks);
                    let ask = Ask::Admit { file, version: round.version, picks };
                    let request = self.send(at, Waiting::Round, ask);
                    self.replicas[at].rounds.request = Some(request);
                }
            }
            Told::Admitted(Some(admitted)) => {
                let left: Vec<_> = rounds.picks.iter().filter(|(number, _)| !admitted.contains(number)).collect();
                if !left.is_empty() && self.plan.flaw != Some(Flaw::PicksTheSameAgain) {
                    rounds.set_aside.extend(left.into_iter().map(|(number, _)| (*number, now + SET_ASIDE)));
                    self.counts.add(Count::PickSetAside);
                }
                rounds.at = now;
            }
            Told::Admitted(None) => {
                rounds.at = now;
                self.counts.add(Count::RoundVoid);
            }
            _ => {}
        }
    }
}

fn cores(cores: u64) -> Amounts {
    Amounts::default().with(Resource::Cores, cores)
}

fn snapshot(rules: &Rules, round: &QueueRound) -> Snapshot {
    let queues = round.places.iter().enumerate().map(|(at, places)| {
        let tenants = places.iter().enumerate().map(|(tenant, place)| {
            let waiting = place.waiting.iter().map(|head| Candidate {
                number: head.submission as i64,
                cost: cores(head.cores).with(Resource::Submissions, 1),
                waited: Duration::from_millis(head.waited),
            });
            let running = cores(place.cores).with(Resource::Submissions, place.submissions);
            (tenant.to_string(), {
                let since_admission = place.since_admission.map(Duration::from_millis);
                Tenant { running, since_admission, waiting: waiting.collect(), has_more: place.has_more }
            })
        });
        // A queue that the file doesn't have has no caps.
        let known = rules.queues[at].as_ref().map_or_else(Queue::default, |known| Queue {
            weight: known.weight,
            caps: known.caps(),
            is_paused: round.paused[at],
            ..Queue::default()
        });
        (at.to_string(), Queue { tenants: tenants.collect(), ..known })
    });
    let capacity = rules.capacity.map(cores).unwrap_or_default();
    Snapshot { capacity, reserve_after: RESERVE_AFTER, queues: queues.collect() }
}
