//! Submissions that wait for their admission by a queue, or are held.

use std::fmt;

/// `claimed_by` of such a row: a session that never exists. To every release the row looks claimed, so it can't be launched. A kill of it is
/// due nevertheless.
pub(super) const UNADMITTED: &str = "'00000000-0000-0000-0000-000000000002'::uuid";

/// The condition for rows that can be claimed at all, as the index `submissions_claimable_by_namespace` has it: claims read none of the
/// rows that wait for their admission, however many there are. It names the other states: a condition on the states that can be claimed
/// would also fit the index of the release before, which has the rows that wait, too.
pub(super) const CLAIMABLE: &str =
    "state NOT IN ('PENDING', 'RUNNING', 'FINISHED', 'FAILED', 'KILLED', 'ERROR', 'LOST')
    AND (state = 'KILLING' OR claimed_by IS DISTINCT FROM '00000000-0000-0000-0000-000000000002'::uuid)";

/// The condition for live submissions in queues, as the index `submissions_in_queues` has it.
pub(super) const IN_QUEUES: &str =
    "queue IS NOT NULL AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING')";

/// The condition for those of them that wait, held ones included.
pub(super) const WAITS: &str =
    "state IN ('QUEUED', 'LAUNCHING') AND claimed_by = '00000000-0000-0000-0000-000000000002'::uuid";

/// Returns the rank of the row `of` among those of its tenant that wait, as `queues::rank` computes it.
pub(super) fn queue_rank(of: &str) -> String {
    rank_with(of, format_args!("{of}.priority::bigint"))
}

/// Returns the same with another priority.
pub(super) fn rank_with(of: &str, priority: impl fmt::Display) -> String {
    format!("({of}.number - {priority} * 1000000)")
}

/// The `queue_rank` of held submissions. The index has them behind all that wait, so rounds read none of them.
pub(super) const HELD_RANK: &str = "9223372036854775807";
