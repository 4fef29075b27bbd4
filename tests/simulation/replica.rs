//! A replica: its session and lease, its claims, and the watch if it holds that lease. It does what `service/` and
//! `workers/` do around the engine, one request at a time.

mod admission;
mod session;
mod watch;
mod work;

use std::collections::BTreeSet;

use admission::Rounds;
pub(crate) use watch::Watch;
use work::Task;

use crate::{
    store::{LeaseName, Session, Time},
    wire::{Told, Waiting},
    world::World,
};

#[derive(Debug, Clone, Default)]
pub(crate) struct Replica {
    pub(crate) alive: bool,
    pub(crate) paused_until: Time,
    /// It is shutting down.
    pub(crate) stopping: bool,
    /// When it is killed if it hasn't ended by itself; 0 while it isn't shutting down.
    killed_at: Time,
    /// 0 if it has none yet.
    pub(crate) session: Session,
    /// When it stops trusting its lease, by its own clock; 0 before it holds the session's lease.
    trusted_until: Time,
    renew_at: Time,
    lease_request: Option<u64>,
    claim_request: Option<u64>,
    claim_at: Time,
    overdue_at: Time,
    tasks: Vec<Task>,
    watch: Option<Watch>,
    watch_request: Option<u64>,
    watch_at: Time,
    /// The leases that it holds in addition to the session's own.
    held: BTreeSet<LeaseName>,
    /// Those that it has resigned, until the database has answered.
    resigning: BTreeSet<LeaseName>,
    deadlines_at: Time,
    /// When it looks for idle sessions, or asks for the lease of that.
    pub(crate) idle_at: Time,
    pub(crate) sessions_at: Time,
    rounds: Rounds,
    /// It can't reach the API server; another replica watches.
    cut_off: bool,
    elsewhere: bool,
    /// Answers that it hasn't processed: the request, the recipient, the time of the request, the answer.
    pub(crate) told: Vec<(u64, Waiting, Time, Told)>,
}

impl Replica {
    pub(crate) fn start() -> Self {
        Self { alive: true, ..Self::default() }
    }

    /// Ends the process.
    pub(crate) fn ends(&mut self) {
        *self = Self::default();
    }

    /// Returns whether it looks for what only one replica looks for.
    pub(crate) fn may_sweep(&self, now: Time) -> bool {
        !self.stopping && self.believes_in_its_lease(now)
    }

    pub(crate) fn holds(&self, name: LeaseName) -> bool {
        self.held.contains(&name)
    }

    fn believes_in_its_lease(&self, now: Time) -> bool {
        now < self.trusted_until
    }
}

impl World {
    /// Lets a replica do one thing.
    pub(crate) fn replica_steps(&mut self) {
        let at = self.rng.below(self.replicas.len() as u64) as usize;
        let replica = &self.replicas[at];
        if !replica.alive || replica.paused_until > self.now {
            return;
        }
        let due = replica.session == 0 || self.now >= replica.renew_at;
        let told = replica.told.iter().any(|(_, waiting, ..)| *waiting == Waiting::Lease);
        match self.rng.below(8) {
            // Renewing the lease comes first, most of the time.
            0..6 if told => self.hear(at),
            0..6 if due => self.session_steps(at),
            0 => self.session_steps(at),
            1 => {
                self.claim_steps(at);
                self.overdue_steps(at);
                self.idle_steps(at);
                self.admission_steps(at);
            }
            2 | 3 => self.hear(at),
            4 | 5 => self.work_steps(at),
            _ => self.watch_steps(at),
        }
    }

    /// Processes one answer.
    fn hear(&mut self, at: usize) {
        let told = &self.replicas[at].told;
        let lease = told.iter().position(|(_, waiting, ..)| *waiting == Waiting::Lease);
        let Some(place) = lease.or_else(|| self.rng.place(told.len())) else { return };
        let (request, waiting, sent_at, told) = self.replicas[at].told.swap_remove(place);
        match waiting {
            Waiting::Lease if self.replicas[at].lease_request == Some(request) => self.hear_of_lease(at, sent_at, told),
            Waiting::Claim if self.replicas[at].claim_request == Some(request) => self.hear_of_claim(at, told),
            Waiting::Task(task) => self.hear_of_task(at, task, request, told),
            Waiting::Watch if self.replicas[at].watch_request == Some(request) => self.hear_of_watch(at, told),
            Waiting::Deadlines if matches!(told, Told::Held(true)) => {
                self.replicas[at].held.insert(LeaseName::Deadlines);
            }
            Waiting::Queues if matches!(told, Told::Held(true)) => {
                self.replicas[at].held.insert(LeaseName::Queues);
            }
            Waiting::Sessions if matches!(told, Told::Held(true)) => {
                self.replicas[at].held.insert(LeaseName::Sessions);
            }
            Waiting::Idle => {
                if let Told::Idle(idle) = told {
                    self.end_idle(at, idle);
                }
            }
            Waiting::Round => self.hear_of_round(at, request, told),
            Waiting::Resignation(name) if matches!(told, Told::Done) => {
                self.replicas[at].resigning.remove(&name);
            }
            // It no longer waits for this answer.
            Waiting::Lease | Waiting::Claim | Waiting::Watch | Waiting::Nothing => {}
            Waiting::Deadlines | Waiting::Queues | Waiting::Sessions | Waiting::Resignation(_) => {}
        }
    }
}
