//! A replica: its session and lease, the claims that it works on, and the watch if it holds that lease. It does what
//! `service/` and `workers/` do around the engine, one request at a time.

mod session;
mod watch;
mod work;

pub(crate) use watch::Watch;
use work::Task;

use crate::{
    store::{Session, Time},
    wire::{Told, Waiting},
    world::World,
};

#[derive(Debug, Clone, Default)]
pub(crate) struct Replica {
    pub(crate) alive: bool,
    pub(crate) paused_until: Time,
    /// To end in order.
    pub(crate) stopping: bool,
    /// None yet if 0.
    pub(crate) session: Session,
    /// When it stops to believe in its lease, by its own clock; 0 before the session's lease is held.
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
    /// Answers that it hasn't looked at: the request, who waits, when it was sent.
    pub(crate) told: Vec<(u64, Waiting, Time, Told)>,
}

impl Replica {
    pub(crate) fn start() -> Self {
        Self { alive: true, ..Self::default() }
    }

    /// The process is gone.
    pub(crate) fn ends(&mut self) {
        *self = Self::default();
    }

    fn believes_in_its_lease(&self, now: Time) -> bool {
        now < self.trusted_until
    }
}

impl World {
    /// A replica does one thing.
    pub(crate) fn replica_steps(&mut self) {
        let at = self.rng.below(self.replicas.len() as u64) as usize;
        let replica = &self.replicas[at];
        if !replica.alive || replica.paused_until > self.now {
            return;
        }
        let due = replica.session == 0 || self.now >= replica.renew_at;
        let told = replica.told.iter().any(|(_, waiting, ..)| *waiting == Waiting::Lease);
        match self.rng.below(8) {
            // Nothing that it does keeps it from renewing its lease in time, mostly.
            0..6 if told => self.hear(at),
            0..6 if due => self.session_steps(at),
            0 => self.session_steps(at),
            1 => {
                self.claim_steps(at);
                self.overdue_steps(at);
            }
            2 | 3 => self.hear(at),
            4 | 5 => self.work_steps(at),
            _ => self.watch_steps(at),
        }
    }

    /// Takes in one answer.
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
            // It doesn't wait for this any more.
            Waiting::Lease | Waiting::Claim | Waiting::Watch | Waiting::Nobody => {}
        }
    }
}
