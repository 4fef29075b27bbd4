//! Counts how submissions end, for metrics.

use sparkgate_metrics::{metrics, text};
use sparkgate_submission::{FailureCode, Outcome, State};

/// Counts the end of a submission.
pub(super) fn count_end(tenant: &str, outcome: &Outcome) {
    count_ends(tenant, outcome.state, code(outcome));
}

/// Counts a submission that was killed before anything was created for it.
pub(super) fn count_kill(tenant: &str, reason: Option<&str>) {
    count_ends(tenant, State::Killed, FailureCode::for_end(State::Killed, None, reason, None));
}

/// Returns the failure code of an outcome as a label value.
pub(super) fn code_of(outcome: &Outcome) -> &'static str {
    code(outcome).map_or("none", FailureCode::as_str)
}

/// Returns the failure code of an outcome, if it is a failure.
pub(super) fn code(outcome: &Outcome) -> Option<FailureCode> {
    FailureCode::for_end(outcome.state, outcome.exit_code, outcome.reason.as_deref(), Some(&outcome.message))
}

fn count_ends(tenant: &str, state: State, code: Option<FailureCode>) {
    let (class, code) = code.map_or(("none", "none"), |code| (code.class().as_str(), code.as_str()));
    metrics().ended.with([text(tenant), state.as_str().into(), class.into(), code.into()]).inc();
}
