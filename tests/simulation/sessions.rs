//! Sessions of Spark Connect: clients use them, and one replica for all ends those that are idle.

use sparkgate::submission::{KillCause, State};

use crate::{
    counts::Count,
    flaw::Flaw,
    store::{LeaseName, Time},
    wire::{Ask, Waiting},
    world::World,
};

/// The pause between two looks at the sessions.
const PERIOD: Time = 200;
/// How long the next look waits for the answer of the last one.
const PATIENCE: Time = 1_000;

impl World {
    /// Lets a client make a request to a session. The gateway lets it through while the row says that the driver runs.
    pub(crate) fn client_steps(&mut self) {
        let Some(number) = self.rng.place(self.store.rows.len()) else { return };
        let runs = self.store.row(number).is_some_and(|row| row.state == State::Running);
        if runs && self.plan.wanted[number].idle.is_some() && self.rng.chance(self.plan.uses) {
            self.say(|_| format!("a client uses session {number}"));
            self.counts.add(Count::SessionUsed);
            self.store.note_use(number);
            self.truths.submissions[number].used_at = Some(self.store.now);
        }
    }

    /// Looks for idle sessions, under a lease.
    pub(crate) fn idle_steps(&mut self, at: usize) {
        let now = self.now;
        if !self.replicas[at].may_sweep(now) {
            return;
        }
        let replica = &mut self.replicas[at];
        if !replica.holds(LeaseName::Sessions) {
            if now >= replica.sessions_at {
                replica.sessions_at = now + 1_000;
                self.send(at, Waiting::Sessions, Ask::Acquire(LeaseName::Sessions));
            }
        } else if now >= replica.idle_at {
            replica.idle_at = now + PATIENCE;
            self.send(at, Waiting::Idle, Ask::IdleSessions);
        }
    }

    /// Returns the idle sessions, and checks that they are.
    pub(crate) fn idle_sessions(&mut self) -> Vec<usize> {
        let idle = self.store.idle_sessions(self.plan.flaw != Some(Flaw::IgnoresUses));
        for number in &idle {
            let used_at = self.truths.submissions[*number].used_at;
            let limit = self.plan.wanted[*number].idle;
            let is_idle = limit.is_some_and(|limit| used_at.is_none_or(|used_at| used_at + limit < self.store.now));
            if !is_idle {
                self.fail(format!(
                    "session {number} was used at {used_at:?}, and is said to be idle at {}",
                    self.store.now
                ));
            }
        }
        idle
    }

    /// Asks for the ends of sessions that were idle. Clients may use them until their rows say so.
    pub(crate) fn end_idle(&mut self, at: usize, idle: Vec<usize>) {
        self.replicas[at].idle_at = self.now + PERIOD;
        for number in idle {
            self.send(at, Waiting::Nothing, Ask::EndIdle(number));
        }
    }

    /// Ends a session as a kill of the installation does: whatever its tenant, and in whatever state it is by now.
    pub(crate) fn kill_idle(&mut self, number: usize) {
        let Some(tenant) = self.store.row(number).map(|row| row.tenant) else { return };
        if self.store.request_kill(number, tenant) {
            self.counts.add(Count::SessionIdle);
            self.truths.submissions[number].is_killed(KillCause::Request);
        }
        self.check(number);
    }
}
