//! Attempts that follow one for which the cluster, or a quota, had no room.

use super::submissions::failure_code;
use sparkgate_submission::State;

/// The conditions that a budget is left.
pub(super) const CAPACITY_LEFT: &str = "retried_capacity < max_retries_capacity";
pub(super) const QUOTA_LEFT: &str = "retried_quota < max_retries_quota";

/// The condition that the end of a row in the state `$3` is that of a kill after which another attempt follows. It never ran: neither the
/// row nor this end, with the exit code `$5` and the start `$11`, says that it did.
pub(super) const FOLLOWED: &str = "state = 'KILLING' AND $3 = 'KILLED' AND no_room IS NOT NULL
    AND started_at IS NULL AND $5::integer IS NULL AND $11::timestamptz IS NULL";

/// Returns the expression for `no_room` of a row that is killed because it didn't start in time: the budget that another attempt counts
/// against, by what the row waits for.
pub(super) fn waited_for() -> String {
    let code = failure_code::expression(&[State::Launching, State::Pending]);
    format!(
        "CASE WHEN state IN ('LAUNCHING', 'PENDING') THEN CASE {code}
             WHEN 'UNSCHEDULABLE' THEN CASE WHEN {CAPACITY_LEFT} THEN 'capacity' END
             WHEN 'QUOTA_EXCEEDED' THEN CASE WHEN {QUOTA_LEFT} THEN 'quota' END
         END END"
    )
}
