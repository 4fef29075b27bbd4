//! Submissions for display: one, or a page of those that match a filter.

pub(crate) mod failure_code;
mod filter;
mod list;
mod row;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{error::Error, row::parse};
pub use filter::Filter;
pub(super) use row::COLUMNS;
pub(super) use row::Row;
use sparkgate_spark::DriverNames;
use sparkgate_submission::{State, SubmissionId};

/// All stored properties of a submission except its request and its objects.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    pub id: SubmissionId,
    /// The position in the order of acceptance.
    pub number: i64,
    pub name: String,
    pub state: State,
    /// The user for whom it runs, as the request says.
    pub owner: String,
    pub tenant: String,
    /// The caller that submitted it, as the gateway authenticated it.
    pub principal: String,
    pub namespace: String,
    /// The client's own id, unique in the tenant.
    pub client_id: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub spark_version: String,
    /// The current attempt, 1 until the first retry.
    pub attempt: i32,
    pub names: DriverNames,
    pub pod_uid: Option<String>,
    pub node: Option<String>,
    pub pod_ip: Option<String>,
    pub exit_code: Option<i32>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    pub executors: ExecutorCounts,
    /// In seconds, as requested or as limited by the operator.
    pub start_timeout: Option<i32>,
    pub run_timeout: Option<i32>,
    pub kill_grace: Option<i32>,
    pub max_retries_infrastructure: i32,
    pub max_retries_application: i32,
    pub max_retries_capacity: i32,
    pub max_retries_quota: i32,
    /// Consecutive failed tries of claimed work, after which it was postponed, for example because the cluster was unavailable.
    pub failed_tries: i32,
    /// The queue that admits it, if there is one.
    pub queue: Option<String>,
    /// Its priority in that queue.
    pub priority: Option<i32>,
    /// When the queue admitted the current attempt.
    pub admitted_at: Option<DateTime<Utc>>,
    /// It isn't launched before it is released.
    pub held: Option<Held>,
}

impl Submission {
    /// Returns the budgets of retries by the words of requests.
    pub fn max_retries(&self) -> [(&'static str, i32); 4] {
        [
            ("infrastructure", self.max_retries_infrastructure),
            ("application", self.max_retries_application),
            ("capacity", self.max_retries_capacity),
            ("quota", self.max_retries_quota),
        ]
    }
}

/// Since when a submission is held, by whom and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub at: DateTime<Utc>,
    /// The subject of the principal.
    pub by: String,
    pub reason: Option<String>,
}

/// The submission that a statement concerned.
#[derive(Debug)]
pub struct Found {
    pub id: SubmissionId,
    /// [`Error::Row`] if this release can't read it; the effect of the statement holds anyway.
    pub document: Result<Submission, Error>,
}

/// The number of executors in each state, over all attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExecutorCounts {
    pub pending: i32,
    pub running: i32,
    pub succeeded: i32,
    pub failed: i32,
    pub deleted: i32,
}

/// A page of submissions, newest first, and whether there are older ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    pub items: Vec<Submission>,
    /// The number of the last submission, or of the last one that the page looked at.
    pub last: Option<i64>,
    /// Whether there are older ones that match, or that the page didn't look at.
    pub more: bool,
}

/// How many submissions are in each state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateCounts {
    pub(super) counts: Vec<(State, u64)>,
    /// Whether there are no more than those that were counted.
    pub(super) are_all: bool,
}

impl StateCounts {
    /// Returns how many are in one of these states, in any if there are none, and whether there may be more.
    pub fn of(&self, states: &[State]) -> (u64, bool) {
        let counted = self.counts.iter().filter(|(state, _)| states.is_empty() || states.contains(state));
        (counted.map(|(_, count)| count).sum(), !self.are_all)
    }
}
