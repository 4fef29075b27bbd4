//! A model of `crates/store`: the rows, claims and leases that matter, with the guards of its statements.
//!
//! `differential/store.rs` plays the same histories on this model and on Postgres.

mod queues;
mod row;
mod sessions;

use std::collections::{BTreeMap, BTreeSet};

use sparkgate::submission::{KillCause, Placement, State, StateChange, engine};

use crate::plan::TENANTS;

use queues::Place;
pub(crate) use queues::{InQueue, Picks, QUEUES, QueueRound};
use row::in_words;
pub(crate) use row::{Claimed, Limits, Next, Past, Restart, Row, ran_out_of_memory};
pub(crate) use sessions::ConnectSession;

/// Milliseconds.
pub(crate) type Time = u64;
/// A replica's session.
pub(crate) type Session = u64;

pub(crate) const LEASE_TTL: Time = 3_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LeaseName {
    Replica(Session),
    Watch,
    Deadlines,
    Queues,
    Sessions,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) holder: Session,
    pub(crate) epoch: i64,
    pub(crate) expires_at: Time,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Store {
    /// The database's clock.
    pub(crate) now: Time,
    /// By number; `None` once the retention has deleted the row.
    pub(crate) rows: Vec<Option<Row>>,
    pub(crate) leases: BTreeMap<LeaseName, Lease>,
    /// The resource version up to which the watch's items are processed.
    pub(crate) position: Option<u64>,
    /// The epoch of the lease under which it was stored.
    pub(crate) position_epoch: i64,
    /// The pause before the first retry.
    pub(crate) pause: Time,
    /// The submissions and attempts whose logs are archived.
    pub(crate) kept_logs: BTreeSet<(usize, i32)>,
    /// The version of rounds of admissions.
    pub(crate) round: u64,
    pub(crate) paused: [bool; QUEUES],
    /// What only sessions have, by their submissions.
    pub(crate) sessions: BTreeMap<usize, ConnectSession>,
    /// The last admission of each tenant in a queue.
    pub(crate) admissions: BTreeMap<(usize, usize), Time>,
}

impl Store {
    pub(crate) fn accept(&mut self, limits: Limits, tenant: usize, in_queue: Option<InQueue>) -> usize {
        self.rows.push(Some(Row {
            tenant,
            cleared: false,
            state: State::Queued,
            attempt: 1,
            named: 1,
            past: Vec::new(),
            limits,
            retried: [0; 4],
            retried_memory: 0,
            restarts: 0,
            grown: BTreeMap::new(),
            deadline: limits.start.filter(|_| in_queue.is_none()).map(|limit| self.now + limit),
            started_at: None,
            place: in_queue.map(|of| Place::new(of, self.now)),
            unadmitted: in_queue.is_some(),
            held: false,
            kill: None,
            no_room: None,
            reason: None,
            message: None,
            pod_uid: None,
            claimed_by: None,
            claim_epoch: 0,
            not_before: None,
            failed_tries: 0,
            outcome: None,
            events: vec![(1, State::Queued)],
        }));
        self.rows.len() - 1
    }

    pub(crate) fn row(&self, submission: usize) -> Option<&Row> {
        self.rows.get(submission)?.as_ref()
    }

    fn row_mut(&mut self, submission: usize) -> Option<&mut Row> {
        self.rows.get_mut(submission)?.as_mut()
    }

    /// Returns the row, with the fields that the engine reads.
    pub(crate) fn read(&self, submission: usize) -> Option<engine::Row> {
        let row = self.row(submission)?;
        let kill = row.kill.clone().unwrap_or_default();
        // Each submission's namespace has names of its own, so an identity proves both.
        let (namespace, pod_uid) = (String::new(), row.pod_uid.clone());
        Some(engine::Row { state: row.state, attempt: row.attempt, namespace, pod: None, pod_uid, kill })
    }

    fn is_alive(&self, session: Session) -> bool {
        self.leases.get(&LeaseName::Replica(session)).is_some_and(|lease| lease.expires_at > self.now)
    }

    /// Claims due rows, for each tenant no more than it has `room` for. `busy` are those that the session works on: an
    /// earlier answer may have been lost.
    pub(crate) fn claim(
        &mut self,
        session: Session,
        limit: usize,
        busy: &[usize],
        mut room: [usize; TENANTS as usize],
    ) -> Vec<Claimed> {
        if !self.is_alive(session) {
            return Vec::new();
        }
        let is_free = |number: usize, row: &Row| {
            !busy.contains(&number) && row.claimed_by.is_none_or(|holder| holder == session || !self.is_alive(holder))
        };
        let due = |row: &Row| {
            matches!(row.state, State::Queued | State::Launching | State::Killing)
                && row.not_before.is_none_or(|at| at <= self.now)
                && !row.waits()
        };
        let free = |number: &usize| self.row(*number).is_some_and(|row| due(row) && is_free(*number, row));
        let mut has_room = |number: &usize| {
            let room = self.row(*number).map(|row| &mut room[row.tenant]).filter(|room| **room > 0);
            room.map(|room| *room -= 1).is_some()
        };
        let numbers = (0..self.rows.len()).filter(free).filter(|number| has_room(number)).take(limit);
        let numbers: Vec<usize> = numbers.collect();
        let mut claimed = Vec::new();
        for submission in numbers {
            let Some(row) = self.row_mut(submission) else { continue };
            (row.claimed_by, row.unadmitted) = (Some(session), false);
            row.claim_epoch += 1;
            if row.state == State::Queued {
                row.state = State::Launching;
                row.events.push((row.attempt, State::Launching));
            }
            claimed.push(Claimed {
                submission,
                attempt: row.attempt,
                named: row.named,
                kill: row.kill.clone(),
                pod_uid: row.pod_uid.clone(),
                epoch: row.claim_epoch,
                failed_tries: row.failed_tries,
                grown: row.retried_memory,
            });
        }
        claimed
    }

    pub(crate) fn advance(
        &mut self,
        submission: usize,
        attempt: i32,
        claim: Option<i64>,
        progress: &StateChange,
        placement: &Placement,
    ) -> bool {
        let to = progress.state();
        let now = self.now;
        let pause = self.pause;
        let guarded = |row: &&mut Row| {
            let recorded = row.pod_uid.as_ref().filter(|_| placement.pod_uid.is_some());
            row.attempt == attempt
                && row.state.may_become(to)
                && claim.is_none_or(|epoch| row.claim_epoch == epoch)
                && recorded.is_none_or(|recorded| placement.pod_uid.as_ref() == Some(recorded))
        };
        let Some(row) = self.row_mut(submission).filter(guarded) else { return false };
        if placement.pod_uid.is_some() {
            row.pod_uid.clone_from(&placement.pod_uid);
        }
        row.events.push((attempt, to));
        if let Some(outcome) = progress.outcome()
            && let Some(next) = row.followed_by(outcome)
        {
            row.retry(outcome.clone(), next, now, pause);
            return true;
        }
        if claim.is_some() && placement.pod_uid.is_some() && *progress == StateChange::Launched {
            (row.claimed_by, row.not_before, row.failed_tries) = (None, None, 0);
        }
        row.state = to;
        row.outcome = progress.outcome().cloned();
        (row.reason, row.message) = (None, None);
        if to == State::Running {
            row.started_at.get_or_insert(now);
        }
        row.deadline = match to {
            State::Pending => row.deadline,
            State::Running => row.started_at.zip(row.limits.run).map(|(started_at, limit)| started_at + limit),
            _ => None,
        };
        true
    }

    /// Stores the names and objects of a claimed attempt. `false` if the claim is lost, or if they are already stored.
    pub(crate) fn keep_attempt(&mut self, submission: usize, attempt: i32, claim: i64) -> bool {
        let guarded = |row: &&mut Row| row.attempt == attempt && row.claim_epoch == claim && row.named < attempt;
        let Some(row) = self.row_mut(submission).filter(guarded) else { return false };
        row.named = attempt;
        true
    }

    /// Records that the memory of a claimed attempt has grown so often. `false` if the claim is lost.
    pub(crate) fn record_growth(&mut self, submission: usize, attempt: i32, claim: i64, grown: u32) -> bool {
        let guarded = |row: &&mut Row| row.attempt == attempt && row.claim_epoch == claim;
        let row = self.row_mut(submission).filter(guarded);
        row.map(|row| row.grown.insert(attempt, grown)).is_some()
    }

    /// Records that a launch found no room in a quota.
    pub(crate) fn note_full_quota(&mut self, submission: usize, claim: i64) {
        let is_launched = |row: &&mut Row| row.claim_epoch == claim && row.state == State::Launching;
        if let Some(row) = self.row_mut(submission).filter(is_launched) {
            row.reason = Some("QuotaExceeded".to_owned());
        }
    }

    pub(crate) fn note_waiting(&mut self, submission: usize, attempt: i32, reason: &str, message: &str) {
        let waits = |row: &&mut Row| row.attempt == attempt && matches!(row.state, State::Launching | State::Pending);
        if let Some(row) = self.row_mut(submission).filter(waits) {
            row.reason = Some(reason.to_owned());
            row.message = Some(message.to_owned());
        }
    }

    pub(crate) fn record_pod(&mut self, submission: usize, attempt: i32, claim: i64, uid: &str) -> Option<State> {
        let guarded = |row: &&mut Row| {
            row.attempt == attempt
                && row.claim_epoch == claim
                && row.pod_uid.as_ref().is_none_or(|recorded| recorded == uid)
        };
        let row = self.row_mut(submission).filter(guarded)?;
        row.pod_uid = Some(uid.to_owned());
        Some(row.state)
    }

    pub(crate) fn release(&mut self, submission: usize, claim: i64) {
        if let Some(row) = self.row_mut(submission).filter(|row| row.claim_epoch == claim) {
            row.claimed_by = None;
            row.not_before = None;
            row.failed_tries = 0;
        }
    }

    /// Gives back the claims of a session except for `busy`, the submissions that it works on.
    pub(crate) fn give_back_unknown(&mut self, session: Session, busy: &[usize]) {
        for (number, row) in (0..).zip(&mut self.rows) {
            if let Some(row) = row.as_mut().filter(|row| row.claimed_by == Some(session) && !busy.contains(&number)) {
                row.claimed_by = None;
            }
        }
    }

    /// Puts the work off. With a reason it counts as a failed try.
    pub(crate) fn retry_later(&mut self, submission: usize, claim: i64, kill: bool, delay: Time, why: Option<&str>) {
        let until = self.now + delay;
        if let Some(row) = self.row_mut(submission).filter(|row| row.claim_epoch == claim) {
            row.claimed_by = None;
            // A kill that was requested meanwhile doesn't wait for the back-off of a launch.
            row.not_before = (row.state != State::Killing || kill).then_some(until);
            row.failed_tries = if why.is_some() { row.failed_tries + 1 } else { 0 };
            if let Some(why) = why.filter(|_| row.kill.is_none()) {
                row.message = Some(why.to_owned());
            }
            if why.is_some() && row.state == State::Launching {
                row.reason = None;
            }
        }
    }

    /// Requests a kill for a caller of a tenant; `false` if the submission doesn't exist, has ended, or is another tenant's.
    pub(crate) fn request_kill(&mut self, submission: usize, tenant: usize) -> bool {
        let may = |row: &&mut Row| row.tenant == tenant && !row.state.is_terminal();
        let Some(row) = self.row_mut(submission).filter(may) else { return false };
        if row.state != State::Killing || row.no_room.is_some() {
            row.killed(KillCause::Request);
        }
        true
    }

    /// Requests the kill of a tenant's live submissions; returns the numbers of those for which it is the first request.
    pub(crate) fn request_kill_of_all(&mut self, tenant: usize) -> Vec<usize> {
        let lives = |row: &Row| !row.state.is_terminal() && (row.state != State::Killing || row.no_room.is_some());
        let live = |row: &Row| row.tenant == tenant && lives(row);
        let numbers: Vec<usize> = (0..self.rows.len()).filter(|number| self.row(*number).is_some_and(live)).collect();
        for number in &numbers {
            self.request_kill(*number, tenant);
        }
        numbers
    }

    /// Hides a tenant's ended submissions from Spark's status; returns how many there were.
    pub(crate) fn clear_ended(&mut self, tenant: usize) -> usize {
        let ended = |row: &&mut Row| row.tenant == tenant && row.state.is_terminal() && !row.cleared;
        let mut cleared = 0;
        for row in self.rows.iter_mut().flatten().filter(ended) {
            row.cleared = true;
            cleared += 1;
        }
        cleared
    }

    /// Returns whether the log of this pod is that of an ended attempt, and isn't archived yet.
    pub(crate) fn log_to_keep(&self, submission: usize, attempt: i32, uid: &str) -> bool {
        let Some(row) = self.row(submission) else { return false };
        let recorded = if attempt == row.attempt {
            row.pod_uid.as_ref().filter(|_| row.state.is_terminal())
        } else {
            row.past.get(attempt as usize - 1).and_then(|past| past.pod_uid.as_ref())
        };
        recorded.is_some_and(|recorded| recorded == uid) && !self.kept_logs.contains(&(submission, attempt))
    }

    pub(crate) fn keep_log(&mut self, submission: usize, attempt: i32) {
        self.kept_logs.insert((submission, attempt));
    }

    /// Kills overdue submissions; returns their numbers.
    pub(crate) fn kill_overdue(&mut self, limit: usize) -> Vec<usize> {
        let now = self.now;
        let overdue = |number: &usize| {
            let row = self.row(*number)?;
            let live = !row.state.is_terminal() && row.state != State::Killing;
            row.deadline.filter(|deadline| live && *deadline <= now)
        };
        let mut numbers: Vec<_> = (0..self.rows.len()).filter_map(|number| Some((overdue(&number)?, number))).collect();
        numbers.sort_unstable();
        numbers.truncate(limit);
        for (_, number) in &numbers {
            let Some(row) = self.row_mut(*number) else { continue };
            let cause = match row.state {
                State::Running => {
                    let limit = row.limits.run.unwrap_or_default() / 1000;
                    KillCause::RunTimeout(format!("still running after {}: killed", in_words(limit)))
                }
                _ => {
                    let limit = in_words(row.limits.start.unwrap_or_default() / 1000);
                    let waited: Vec<_> = row.reason.iter().chain(&row.message).cloned().collect();
                    let waited = if row.message.is_some() { waited.join(": ") } else { String::new() };
                    let waited = if waited.is_empty() { String::new() } else { format!(": {waited}") };
                    KillCause::StartTimeout(format!("not running within {limit}{waited}"))
                }
            };
            let no_room = row.waited_for().filter(|_| matches!(cause, KillCause::StartTimeout(_)));
            row.killed(cause);
            row.no_room = no_room;
        }
        numbers.into_iter().map(|(_, number)| number).collect()
    }

    /// Returns the rows whose pod should exist, by number.
    pub(crate) fn live(&self) -> Vec<(usize, engine::Row)> {
        let live = |row: &engine::Row| match row.state {
            State::Pending | State::Running => true,
            State::Launching | State::Killing => row.pod_uid.is_some(),
            _ => false,
        };
        (0..self.rows.len()).filter_map(|at| Some((at, self.read(at)?))).filter(|(_, row)| live(row)).collect()
    }

    /// Deletes the row of an ended submission, as the retention does.
    pub(crate) fn delete(&mut self, submission: usize) -> bool {
        let ended = self.row(submission).is_some_and(|row| row.state.is_terminal());
        if ended {
            self.rows[submission] = None;
        }
        ended
    }

    pub(crate) fn acquire_lease(&mut self, name: LeaseName, holder: Session, ttl: Time) -> bool {
        let (now, expires_at) = (self.now, self.now + ttl);
        let lease = self.leases.entry(name).or_insert(Lease { holder, epoch: 1, expires_at: now });
        if lease.holder != holder && lease.expires_at > now {
            return false;
        }
        lease.epoch += i64::from(lease.holder != holder);
        lease.holder = holder;
        lease.expires_at = expires_at;
        true
    }

    /// Stores the position of the watch, if the session holds its lease and no later holder has stored one.
    pub(crate) fn keep_position(&mut self, holder: Session, version: u64) -> bool {
        let lease = self.leases.get(&LeaseName::Watch);
        let held = lease.filter(|lease| lease.holder == holder && lease.expires_at > self.now);
        let Some(epoch) = held.map(|lease| lease.epoch).filter(|epoch| self.position_epoch <= *epoch) else {
            return false;
        };
        (self.position, self.position_epoch) = (Some(version), epoch);
        true
    }

    /// Renews leases; returns the names of those that still held.
    pub(crate) fn renew_leases(&mut self, holder: Session, names: &[LeaseName], ttl: Time) -> Vec<LeaseName> {
        let now = self.now;
        let held = self
            .leases
            .iter_mut()
            .filter(|(name, lease)| names.contains(name) && lease.holder == holder && lease.expires_at > now);
        held.map(|(name, lease)| {
            lease.expires_at = now + ttl;
            *name
        })
        .collect()
    }

    /// Returns whether another holder has the lease.
    pub(crate) fn is_elsewhere(&self, name: LeaseName, holder: Session) -> bool {
        self.leases.get(&name).is_some_and(|lease| lease.holder != holder && lease.expires_at > self.now)
    }

    pub(crate) fn end_lease(&mut self, name: LeaseName, holder: Session) {
        if let Some(lease) = self.leases.get_mut(&name).filter(|lease| lease.holder == holder) {
            lease.expires_at = self.now;
        }
    }

    pub(crate) fn end_leases(&mut self, holder: Session) {
        let now = self.now;
        for lease in self.leases.values_mut().filter(|lease| lease.holder == holder) {
            lease.expires_at = now;
        }
    }
}
