//! The row of a submission in the model, and its transitions.

use std::collections::BTreeMap;

use sparkgate::submission::{FailureCode, KillCause, Outcome, RetryKind, State};

use super::{Place, Session, Time};

/// A run that is longer starts the pauses between restarts anew.
const GOOD_RUN: Time = 600_000;

/// The options besides Spark's own properties: time limits, and retries.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Limits {
    pub(crate) start: Option<Time>,
    pub(crate) run: Option<Time>,
    pub(crate) infrastructure: u32,
    pub(crate) application: u32,
    pub(crate) capacity: u32,
    pub(crate) quota: u32,
    /// How many attempts get more memory; `None` if nothing is said.
    pub(crate) memory: Option<u32>,
    pub(crate) restart: Restart,
}

impl Limits {
    /// Returns the budgets in the order of [`RetryKind`].
    pub(crate) fn budgets(&self) -> [u32; 4] {
        [self.infrastructure, self.application, self.capacity, self.quota]
    }

    /// Returns whether a submission may have more attempts than a history has names for.
    pub(crate) fn exceeds(&self, attempts: usize) -> bool {
        let budgets = self.budgets().iter().sum::<u32>() + self.memory.unwrap_or_default();
        self.restart != Restart::Never || budgets as usize >= attempts
    }
}

/// Which ends are followed by another attempt, however many there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Restart {
    #[default]
    Never,
    OnFailure,
    Always,
}

impl Restart {
    pub(crate) fn follows(self, end: State) -> bool {
        match end {
            State::Failed | State::Lost => self != Self::Never,
            State::Finished => self == Self::Always,
            _ => false,
        }
    }
}

/// Why another attempt follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    Budget(RetryKind),
    /// Memory ran out, and it gets more.
    Memory,
    Restart,
}

pub(crate) fn ran_out_of_memory(outcome: &Outcome) -> bool {
    let (reason, message) = (outcome.reason.as_deref(), Some(outcome.message.as_str()));
    FailureCode::for_end(outcome.state, outcome.exit_code, reason, message) == Some(FailureCode::OutOfMemory)
}

/// An attempt that was followed by another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) outcome: Outcome,
    pub(crate) pod_uid: Option<String>,
    /// Its names were stored.
    pub(crate) named: bool,
    pub(crate) next: Next,
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
    pub(crate) retried: [u32; 4],
    pub(crate) retried_memory: u32,
    pub(crate) restarts: u32,
    /// The attempts whose launch has recorded that they get more memory, with how often it grew.
    pub(crate) grown: BTreeMap<i32, u32>,
    pub(crate) deadline: Option<Time>,
    pub(crate) started_at: Option<Time>,
    pub(crate) kill: Option<KillCause>,
    /// The budget of the attempt that follows this kill.
    pub(crate) no_room: Option<RetryKind>,
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
    /// How often its memory grew.
    pub(crate) grown: u32,
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
        (self.kill, self.no_room) = (Some(cause), None);
        self.events.push((self.attempt, self.state));
    }

    /// Returns why another attempt may follow this end.
    pub(super) fn followed_by(&self, outcome: &Outcome) -> Option<Next> {
        let never_ran = self.started_at.is_none() && outcome.exit_code.is_none();
        if self.state == State::Killing {
            return self.no_room.filter(|_| outcome.state == State::Killed && never_ran).map(Next::Budget);
        }
        let kind = outcome.retry_kind();
        let by_budget = match kind {
            Some(RetryKind::Application) if ran_out_of_memory(outcome) && self.limits.memory.is_some() => {
                self.limits.memory.filter(|most| self.retried_memory < *most).map(|_| Next::Memory)
            }
            _ => kind.filter(|kind| self.has_left(*kind)).map(Next::Budget),
        };
        by_budget.or_else(|| self.limits.restart.follows(outcome.state).then_some(Next::Restart))
    }

    fn has_left(&self, kind: RetryKind) -> bool {
        let most = self.limits.budgets();
        most.get(kind as usize).is_none_or(|most| self.retried[kind as usize] < *most)
    }

    /// Returns the budget of another attempt after a start timeout, by what the row waits for.
    pub(super) fn waited_for(&self) -> Option<RetryKind> {
        let waits = matches!(self.state, State::Launching | State::Pending);
        let code = FailureCode::for_row(self.state, None, self.reason.as_deref(), self.message.as_deref());
        let kind = code.filter(|_| waits)?.retry_kind()?;
        (matches!(kind, RetryKind::Capacity | RetryKind::Quota) && self.has_left(kind)).then_some(kind)
    }

    pub(super) fn retry(&mut self, outcome: Outcome, next: Next, now: Time, pause: Time) {
        let was_long = self.started_at.is_some_and(|at| at + GOOD_RUN < now);
        let doubled = match next {
            Next::Restart if was_long => 0,
            Next::Restart => self.restarts,
            Next::Budget(_) | Next::Memory => self.retried.iter().sum::<u32>() + self.retried_memory,
        };
        let due = now + (pause << doubled.min(30)).min(30 * pause);
        match next {
            Next::Budget(kind) => {
                if let Some(retried) = self.retried.get_mut(kind as usize) {
                    *retried += 1;
                }
            }
            Next::Memory => self.retried_memory += 1,
            Next::Restart => self.restarts = doubled + 1,
        }
        let named = self.named == self.attempt;
        self.past.push(Past { outcome, pod_uid: self.pod_uid.take(), named, next });
        self.attempt += 1;
        self.state = State::Queued;
        self.events.push((self.attempt, State::Queued));
        (self.reason, self.message, self.started_at) = (None, None, None);
        (self.kill, self.no_room) = (None, None);
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
