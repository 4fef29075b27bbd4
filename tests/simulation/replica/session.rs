//! The session and its lease: renewed in time, and given up in doubt.

use super::Replica;
use crate::{
    counts::Count,
    store::{LEASE_TTL, LeaseName, Time},
    wire::{Ask, Told, Waiting},
    world::World,
};

const RENEW_EVERY: Time = 750;
/// How much earlier than the database a replica considers its lease expired.
const MARGIN: Time = 500;
/// The timeout of requests about the lease.
const PATIENCE: Time = 1_500;

impl World {
    pub(super) fn session_steps(&mut self, at: usize) {
        let (now, replica) = (self.now, &mut self.replicas[at]);
        if replica.session == 0 {
            self.last_session += 1;
            replica.session = self.last_session;
            let session = replica.session;
            self.say(|_| format!("replica {at} begins session {session}"));
        } else if replica.trusted_until > 0 && !replica.believes_in_its_lease(now) {
            self.step_down(at);
            return;
        }
        let replica = &mut self.replicas[at];
        if replica.stopping && replica.tasks.is_empty() {
            self.say(|_| format!("replica {at} stops"));
            self.counts.add(Count::Stopped);
            self.send(at, Waiting::Lease, Ask::EndLeases);
            self.replicas[at].ends();
            return;
        }
        if replica.lease_request.is_some() && now < replica.renew_at + PATIENCE || now < replica.renew_at {
            return;
        }
        let ask = match replica.trusted_until {
            0 => Ask::Acquire(LeaseName::Replica(replica.session)),
            _ => Ask::Renew { watch: replica.watch.is_some() },
        };
        replica.renew_at = now + RENEW_EVERY;
        let request = self.send(at, Waiting::Lease, ask);
        self.replicas[at].lease_request = Some(request);
    }

    pub(super) fn hear_of_lease(&mut self, at: usize, sent_at: Time, told: Told) {
        let replica = &mut self.replicas[at];
        replica.lease_request = None;
        let until = sent_at + LEASE_TTL - MARGIN;
        match told {
            Told::Held(true) => replica.trusted_until = until,
            Told::Renewed { lost } if !lost.contains(&LeaseName::Replica(replica.session)) => {
                replica.trusted_until = until;
                if lost.contains(&LeaseName::Watch) {
                    self.stop_watching(at);
                }
            }
            Told::Nothing => replica.renew_at = self.now,
            _ => self.step_down(at),
        }
    }

    /// Gives up all work, because the lease may have expired: the replica that claims the rows next continues it.
    pub(super) fn step_down(&mut self, at: usize) {
        self.say(|_| format!("replica {at} gives its session up"));
        self.counts.add(Count::SteppedDown);
        let stopping = self.replicas[at].stopping;
        self.replicas[at] = Replica { stopping, ..Replica::start() };
    }
}
