//! Queues in the model: what waits, what runs, and the statements that change it, as `crates/store/src/queues` has them.

use sparkgate::submission::{State, queues::rank};

use super::{LeaseName, Row, Session, Store, Time};
use crate::plan::TENANTS;

/// The most queues of a history.
pub(crate) const QUEUES: usize = 2;

/// The queue of a submission, and what it costs there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InQueue {
    pub(crate) queue: usize,
    pub(crate) priority: i32,
    pub(crate) cores: u64,
}

/// The place of a row in its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) of: InQueue,
    /// It waits among those of its tenant.
    pub(crate) ranked: bool,
    pub(crate) admitted: bool,
    pub(crate) queued_at: Time,
}

impl Place {
    pub(super) fn new(of: InQueue, queued_at: Time) -> Self {
        Self { of, ranked: true, admitted: false, queued_at }
    }
}

/// A submission that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) submission: usize,
    pub(crate) attempt: i32,
    pub(crate) cores: u64,
    pub(crate) waited: Time,
}

/// What a tenant has in a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InPlace {
    pub(crate) submissions: u64,
    pub(crate) cores: u64,
    pub(crate) waiting: Vec<Head>,
    pub(crate) has_more: bool,
    /// How long ago its last admission was.
    pub(crate) since_admission: Option<Time>,
}

/// What a round decides about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueRound {
    pub(crate) version: u64,
    pub(crate) paused: [bool; QUEUES],
    /// By queue and tenant.
    pub(crate) places: [[InPlace; TENANTS as usize]; QUEUES],
}

/// The submissions and attempts that a decision admits.
pub(crate) type Picks = Vec<(usize, i32)>;

impl Row {
    /// Returns whether it waits for its admission, or is held.
    pub(crate) fn waits(&self) -> bool {
        self.unadmitted && matches!(self.state, State::Queued | State::Launching)
    }

    /// Returns its queue, if it counts there as one that runs.
    pub(crate) fn runs_in(&self) -> Option<InQueue> {
        let place = self.place.filter(|place| !place.ranked && !self.held && !self.state.is_terminal())?;
        (place.admitted || self.pod_uid.is_some()).then_some(place.of)
    }

    fn is_next_in(&self, now: Time) -> Option<(InQueue, Time)> {
        let place = self.place.filter(|place| place.ranked && !self.held && self.waits())?;
        let is_due = self.not_before.is_none_or(|at| at <= now);
        is_due.then_some((place.of, place.queued_at))
    }
}

impl Store {
    fn by_rank(&self) -> Vec<(i64, usize)> {
        let rank_of = |(number, row): (usize, &Option<Row>)| {
            Some((rank(number as i64, row.as_ref()?.place?.of.priority), number))
        };
        let mut all: Vec<_> = self.rows.iter().enumerate().filter_map(rank_of).collect();
        all.sort_unstable();
        all
    }

    /// Reads what runs, and of each tenant the first `heads` that wait and cost no more than `largest` permits, but for those that
    /// are set aside.
    pub(crate) fn queue_round(&self, heads: usize, largest: [Option<u64>; QUEUES], set_aside: &[usize]) -> QueueRound {
        let mut round = QueueRound { version: self.round, paused: self.paused, places: Default::default() };
        for ((queue, tenant), at) in &self.admissions {
            round.places[*queue][*tenant].since_admission = Some(self.now.saturating_sub(*at));
        }
        for (_, number) in self.by_rank() {
            let Some(row) = self.row(number) else { continue };
            if let Some(of) = row.runs_in() {
                let place = &mut round.places[of.queue][row.tenant];
                place.submissions += 1;
                place.cores += of.cores;
            }
            let Some((of, queued_at)) = row.is_next_in(self.now) else { continue };
            let place = &mut round.places[of.queue][row.tenant];
            if set_aside.contains(&number) || largest[of.queue].is_some_and(|most| of.cores > most) {
                continue;
            }
            if place.waiting.len() == heads {
                place.has_more = true;
                continue;
            }
            let waited = self.now.saturating_sub(queued_at);
            place.waiting.push(Head { submission: number, attempt: row.attempt, cores: of.cores, waited });
        }
        round
    }

    /// Admits for a decision about this version of rounds, unless the session has lost the lease. Rows of tenants for which
    /// `is_locked` are passed over.
    pub(crate) fn admit(
        &mut self,
        session: Session,
        version: u64,
        picks: &[(usize, i32)],
        is_locked: impl Fn(usize) -> bool,
    ) -> Option<Vec<usize>> {
        let lease = self.leases.get(&LeaseName::Queues);
        lease.filter(|lease| lease.holder == session && lease.expires_at > self.now)?;
        if version != self.round {
            return None;
        }
        self.round += 1;
        let now = self.now;
        let mut admitted = Vec::new();
        for (number, attempt) in picks {
            let may = |row: &&mut Row| {
                row.attempt == *attempt && row.waits() && !row.held && row.place.is_some_and(|place| place.ranked)
            };
            let Some(row) = self.row_mut(*number).filter(may).filter(|row| !is_locked(row.tenant)) else { continue };
            row.unadmitted = false;
            if let Some(place) = &mut row.place {
                (place.ranked, place.admitted) = (false, true);
            }
            row.deadline = row.deadline.or_else(|| row.limits.start.map(|limit| now + limit));
            (row.reason, row.message) = (None, None);
            let place = row.place.map(|place| (place.of.queue, row.tenant));
            self.admissions.extend(place.map(|place| (place, now)));
            admitted.push(*number);
        }
        Some(admitted)
    }

    /// Returns an attempt to its queue for which the cluster has no room, unless its pod is recorded.
    pub(crate) fn return_to_queue(&mut self, submission: usize, claim: i64) {
        let returns = |row: &&mut Row| {
            row.claim_epoch == claim && row.state == State::Launching && row.pod_uid.is_none() && row.place.is_some()
        };
        if let Some(row) = self.row_mut(submission).filter(returns) {
            row.unadmitted = true;
            if let Some(place) = &mut row.place {
                (place.ranked, place.admitted) = (true, false);
            }
        }
    }

    /// Holds a queued submission for a caller of a tenant.
    pub(crate) fn hold(&mut self, submission: usize, tenant: usize) -> bool {
        let may = |row: &&mut Row| row.tenant == tenant && row.state == State::Queued && !row.held;
        let Some(row) = self.row_mut(submission).filter(may) else { return false };
        (row.held, row.unadmitted, row.deadline) = (true, true, None);
        if let Some(place) = &mut row.place {
            (place.ranked, place.admitted) = (false, false);
        }
        (row.reason, row.message) = (Some("Held".to_owned()), Some("held by ann".to_owned()));
        row.events.push((row.attempt, row.state));
        true
    }

    pub(crate) fn release_held(&mut self, submission: usize, tenant: usize) -> bool {
        let now = self.now;
        let may = |row: &&mut Row| row.tenant == tenant && row.state == State::Queued && row.held;
        let Some(row) = self.row_mut(submission).filter(may) else { return false };
        row.held = false;
        (row.reason, row.message) = (None, None);
        match &mut row.place {
            Some(place) => place.ranked = true,
            None => {
                row.unadmitted = false;
                row.deadline = row.limits.start.map(|limit| now + limit);
            }
        }
        row.events.push((row.attempt, row.state));
        true
    }
}
