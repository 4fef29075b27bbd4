//! The row of a submission in the model, and its transitions.

use sparkgate::submission::{KillCause, Outcome, RetryKind, State};

use super::{Place, Session, Time};

/// The options besides Spark's own properties: time limits, and retries.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) start: Option<Time>,
    pub(crate) run: Option<Time>,
    pub(crate) infrastructure: u32,
    pub(crate) application: u32,
}

/// An attempt that was followed by another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) outcome: Outcome,
    pub(crate) pod_uid: Option<String>,
    /// Its names were stored.
    pub(crate) named: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) tenant: usize,
    /// `clear` has hidden it from Spark's status.
    pub(crate) cleared: bool,
    pub(crate) state: State,
    pub(crate) attempt: i32,
    /// The attempt whose names and objects are stored: the previous one, until a launch has stored those of the current
    /// one.
    pub(crate) named: i32,
    pub(crate) past: Vec<Past>,
    pub(crate) limits: Limits,
    /// The number of retries of each kind.
    pub(crate) retried: [u32; 2],
    pub(crate) deadline: Option<Time>,
    pub(crate) started_at: Option<Time>,
    pub(crate) kill: Option<KillCause>,
    /// The reason of a wait.
    pub(crate) reason: Option<String>,
    pub(crate) message: Option<String>,
    pub(crate) pod_uid: Option<String>,
    pub(crate) claimed_by: Option<Session>,
    pub(crate) claim_epoch: i64,
    pub(crate) not_before: Option<Time>,
    pub(crate) failed_tries: i32,
    pub(crate) outcome: Option<Outcome>,
    /// Its place, if it is in a queue.
    pub(crate) place: Option<Place>,
    /// It looks claimed until it is admitted or released.
    pub(crate) unadmitted: bool,
    pub(crate) held: bool,
    /// Its events: the attempt and the state.
    pub(crate) events: Vec<(i32, State)>,
}

/// The result of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimed {
    pub(crate) submission: usize,
    pub(crate) attempt: i32,
    pub(crate) named: i32,
    pub(crate) kill: Option<KillCause>,
    pub(crate) pod_uid: Option<String>,
    pub(crate) epoch: i64,
    pub(crate) failed_tries: i32,
}

impl Row {
    pub(super) fn killed(&mut self, cause: KillCause) {
        self.not_before = None;
        self.deadline = None;
        // Launched already: the launcher has nothing left to do.
        if matches!(self.state, State::Pending | State::Running) {
            self.claimed_by = None;
        }
        self.state = if self.state == State::Queued { State::Killed } else { State::Killing };
        self.outcome = (self.state == State::Killed).then(|| Outcome::killed(&cause));
        self.kill = Some(cause);
        self.events.push((self.attempt, self.state));
    }

    /// Returns the budget from which another attempt may be taken.
    pub(super) fn may_retry(&self, outcome: &Outcome) -> Option<RetryKind> {
        let kind = outcome.retry_kind().filter(|_| self.state != State::Killing)?;
        let [infrastructure, application] = self.retried;
        let left = match kind {
            RetryKind::Infrastructure => infrastructure < self.limits.infrastructure,
            RetryKind::Application => application < self.limits.application,
            RetryKind::Requeue => true,
        };
        left.then_some(kind)
    }

    pub(super) fn retry(&mut self, outcome: Outcome, kind: RetryKind, now: Time, pause: Time) {
        let due = now + (pause << self.retried.iter().sum::<u32>()).min(30 * pause);
        if let Some(retried) = self.retried.get_mut(kind as usize) {
            *retried += 1;
        }
        self.past.push(Past { outcome, pod_uid: self.pod_uid.take(), named: self.named == self.attempt });
        self.attempt += 1;
        self.state = State::Queued;
        self.events.push((self.attempt, State::Queued));
        (self.reason, self.message, self.started_at) = (None, None, None);
        self.claimed_by = None;
        self.claim_epoch += 1;
        self.failed_tries = 0;
        self.not_before = Some(due);
        self.place = self.place.map(|place| Place::new(place.of, now));
        self.unadmitted = self.place.is_some();
        self.deadline = self.limits.start.filter(|_| self.place.is_none()).map(|limit| due + limit);
    }
}

pub(super) fn in_words(seconds: Time) -> String {
    match seconds {
        hours if hours % 3600 == 0 => format!("{}h", hours / 3600),
        minutes if minutes % 60 == 0 => format!("{}m", minutes / 60),
        seconds => format!("{seconds}s"),
    }
}
