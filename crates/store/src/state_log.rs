//! The log line of a state change, written by the replica whose statement made the change, once it has committed.

use serde::Deserialize;
use sparkgate_submission::{FailureCode, State, SubmissionId};

use super::{counted_ends::count_kill, error::Error, row::parse};

/// A state change that a statement made.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LoggedChange<'a> {
    pub(crate) submission: &'a str,
    pub(crate) tenant: &'a str,
    pub(crate) attempt: i32,
    /// `None` for a submission that was just accepted.
    pub(crate) from: Option<&'a str>,
    pub(crate) state: &'a str,
    pub(crate) exit_code: Option<i32>,
    pub(crate) reason: Option<&'a str>,
    /// Only decides about the failure code: it may contain output of the driver.
    pub(crate) message: Option<&'a str>,
}

impl LoggedChange<'_> {
    /// Writes the line. It has the same words and fields for every change; only the statements that write events call this, so
    /// that each event of a submission has one line.
    pub(crate) fn log(self) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let Self { submission, tenant, attempt, from, state, exit_code, reason, message } = self;
        let is_end = |state: State| FailureCode::for_end(state, exit_code, reason, message);
        let failure_code = state.parse().ok().and_then(is_end).map(FailureCode::as_str);
        tracing::info!(submission, tenant, attempt, from, state, reason, exit_code, failure_code, "state changed");
    }
}

/// A state change as a row of JSON, of a statement that makes many.
#[derive(Debug, Deserialize)]
pub(crate) struct ChangedRow {
    id: String,
    tenant: String,
    attempt: i32,
    was: String,
    state: String,
    reason: Option<String>,
}

/// The rows of `moved` as one value of JSON: the changes of a statement that makes many.
pub(crate) const CHANGED: &str =
    "(SELECT coalesce(jsonb_agg(jsonb_build_object('id', id, 'tenant', tenant, 'attempt', attempt,
    'was', was, 'state', state, 'reason', reason)), '[]') FROM moved)";

impl ChangedRow {
    /// Returns the ids of rows.
    ///
    /// # Errors
    /// This release can't read one.
    pub(crate) fn ids(rows: &[Self]) -> Result<Vec<SubmissionId>, Error> {
        rows.iter().map(|row| parse(&row.id, &row.id)).collect()
    }

    /// Logs the change, and counts the submission if this was its end: a kill before anything was created for it.
    pub(crate) fn record(&self) {
        self.record_as(self.reason.as_deref());
    }

    /// Does the same with the reason of the event.
    pub(crate) fn record_as(&self, reason: Option<&str>) {
        let Self { id, tenant, attempt, was, state, .. } = self;
        let changed = LoggedChange {
            submission: id,
            tenant,
            attempt: *attempt,
            from: Some(was),
            state,
            reason,
            ..LoggedChange::default()
        };
        changed.log();
        if state == State::Killed.as_str() {
            count_kill(tenant, reason);
        }
    }
}
