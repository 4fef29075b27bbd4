//! Liveness: from each state, without more faults, a fair schedule ends the submission. It lets every part of the system do its
//! next step, round by round.
//!
//! One fault may stay: a link of one replica is cut and never heals.

use std::{
    collections::HashSet,
    hash::{BuildHasher, RandomState},
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    action::{Action, Link, Slot, Way},
    bounds::{ATTEMPTS, REPLICAS},
    model::Gateway,
    truth::Truth,
    world::{At, World},
};

/// The most rounds until everything has ended.
const ROUNDS: usize = 40;
/// The most effects of one observation.
const EFFECTS: usize = 12;

type Lasting = Option<(At, Link)>;

/// The states from which everything ends, as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    known: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

impl Settling {
    fn known(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Returns whether the submission ends from here, whichever link stays cut.
    pub(crate) fn ends(&self, world: &World) -> bool {
        if world.broken().is_some() {
            return true;
        }
        let links = (0..REPLICAS as At).flat_map(|at| [Link::Database, Link::Cluster].map(|link| Some((at, link))));
        std::iter::once(None).chain(links).zip(0..).all(|(lasting, number)| self.ends_with(world, lasting, number))
    }

    fn ends_with(&self, world: &World, lasting: Lasting, number: u8) -> bool {
        let mut world = World { faults: 0, kills: 0, truth: Truth::default(), ..*world };
        for at in 0..REPLICAS as At {
            let replica = world.replica_mut(at);
            replica.reaches_database = lasting != Some((at, Link::Database));
            replica.reaches_cluster = lasting != Some((at, Link::Cluster));
        }
        let mut passed = Vec::new();
        for _ in 0..ROUNDS {
            let hash = self.settling.hasher.hash_one((world, number));
            let is_over = world.row.is_none_or(|row| row.state.is_terminal());
            if is_over || self.settling.known().contains(&hash) {
                self.settling.known().extend(passed);
                return true;
            }
            passed.push(hash);
            self.round(&mut world, lasting);
        }
        false
    }

    /// Lets each part do its next step.
    fn round(&self, world: &mut World, lasting: Lasting) {
        let mut step = |action: Action| self.apply_if_possible(world, action);
        step(Action::Arrive);
        step(Action::QueueNext);
        for at in 0..REPLICAS as At {
            if lasting == Some((at, Link::Database)) {
                // It can't renew its lease.
                step(Action::LeaseRunsOut(at));
            }
            step(Action::NewSession(at));
            step(Action::Resign(at));
            step(Action::GiveBackUnknown(at));
            step(Action::Claim(at));
            step(Action::Step(at, Slot::Task, Way::Answered));
        }
        step(Action::WatchExpires);
        for at in 0..REPLICAS as At {
            step(Action::Watch(at));
            let names = || 1..=ATTEMPTS as u8;
            let seen = names().flat_map(|name| [Action::See(at, name), Action::SeeGone(at, name)]);
            for observation in seen.chain([Action::Miss(at)]) {
                step(observation);
                for _ in 0..EFFECTS {
                    step(Action::Step(at, Slot::Following, Way::Answered));
                }
            }
        }
        for name in 1..=ATTEMPTS as u8 {
            step(Action::ForgedGoes(name));
            step(Action::Collect(name));
            step(Action::Start(name));
            step(Action::Exit(name, 0));
        }
    }

    fn apply_if_possible(&self, world: &mut World, action: Action) {
        let mut next = *world;
        if self.apply(&mut next, action).is_some() {
            *world = next;
        }
    }
}
