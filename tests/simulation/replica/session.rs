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
/// The time that a process has to shut down.
const STOPS_WITHIN: Time = 6_000;
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
        if self.replicas[at].stopping && self.stops(at) {
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
        // Exactly what it holds: what it has resigned expires, whether the database heard of it or not.
        let own = LeaseName::Replica(replica.session);
        let renewed = std::iter::once(own).chain(replica.held.iter().copied()).collect();
        let ask = if replica.trusted_until == 0 { Ask::Acquire(own) } else { Ask::Renew(renewed) };
        replica.renew_at = now + RENEW_EVERY;
        let resigning: Vec<_> = replica.resigning.difference(&replica.held).copied().collect();
        let request = self.send(at, Waiting::Lease, ask);
        self.replicas[at].lease_request = Some(request);
        for name in resigning {
            self.send(at, Waiting::Resignation(name), Ask::EndLease(name));
        }
    }

    /// Resigns the leases of a replica that shuts down. If its work takes too long it is killed: returns `true` then.
    fn stops(&mut self, at: usize) -> bool {
        let (now, replica) = (self.now, &mut self.replicas[at]);
        if replica.killed_at == 0 {
            replica.killed_at = now + STOPS_WITHIN;
            let held: Vec<_> = replica.held.iter().copied().collect();
            self.stop_watching(at);
            held.into_iter().for_each(|name| self.resign(at, name));
        }
        let is_late = now >= self.replicas[at].killed_at;
        if is_late {
            self.say(|_| format!("replica {at} is killed: it doesn't stop"));
            self.replicas[at].ends();
        }
        is_late
    }

    /// Resigns one lease. The database is asked again until it answers.
    pub(super) fn resign(&mut self, at: usize, name: LeaseName) {
        self.replicas[at].held.remove(&name);
        self.replicas[at].resigning.insert(name);
        self.send(at, Waiting::Resignation(name), Ask::EndLease(name));
    }

    pub(super) fn hear_of_lease(&mut self, at: usize, sent_at: Time, told: Told) {
        let replica = &mut self.replicas[at];
        replica.lease_request = None;
        let until = sent_at + LEASE_TTL - MARGIN;
        match told {
            Told::Held(true) => replica.trusted_until = until,
            Told::Renewed { asked, renewed } if renewed.contains(&LeaseName::Replica(replica.session)) => {
                replica.trusted_until = until;
                for lost in asked.into_iter().filter(|name| !renewed.contains(name)) {
                    let held = replica.held.remove(&lost);
                    if held && lost == LeaseName::Watch {
                        return self.stop_watching(at);
                    }
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
