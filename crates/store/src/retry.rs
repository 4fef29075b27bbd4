//! Queues another attempt after one that failed.

use chrono::{DateTime, Utc};

use super::{
    claim::UNCLAIMED_NOW,
    counted_ends::code_of,
    deadlines::started,
    error::{Error, within},
    row::words,
    sealed::UNCLAIMED_SEALED,
    state_log::LoggedChange,
    store::Store,
    unadmitted::{UNADMITTED, queue_rank},
    usage::ended,
};
use sparkgate_metrics::{metrics, text};
use sparkgate_submission::{Outcome, Placement, RetryKind, State, SubmissionId, kept};

/// The reason of the event that queues another attempt.
const REASON: &str = "Retry";
/// Pause before the first retry in seconds, doubled for each further one up to the maximum.
const PAUSE: f64 = 10.0;
const PAUSE_MAX: f64 = 300.0;

/// Returns the statement of [`Store::retry`], which binds its parameters in their order.
fn statement(kind: RetryKind) -> String {
    // The condition for another attempt, and what it counts.
    let (is_left, counted) = match kind {
        RetryKind::Infrastructure => (
            "retried_infrastructure < max_retries_infrastructure",
            "retried_infrastructure = old.retried_infrastructure + 1,",
        ),
        RetryKind::Application => {
            ("retried_application < max_retries_application", "retried_application = old.retried_application + 1,")
        }
        RetryKind::Requeue => ("true", ""),
    };
    let (started, since) = (started("$11::timestamptz", "old"), started("$18::timestamptz", "old"));
    let ended = ended("$19::timestamptz", &since, "old");
    let rank = queue_rank("old");
    // The start timeout begins when the pause is over, and in a queue when the attempt is admitted.
    format!(
        r#"
            WITH old AS (
                SELECT *, clock_timestamp() AS ended, clock_timestamp() + make_interval(secs =>
                    least($14 * 2.0 ^ least(retried_infrastructure + retried_application, 30), $15)) AS due
                FROM submissions
                WHERE id = $1 AND attempt = $2 AND state = ANY($4) AND ($13::bigint IS NULL OR claim_epoch = $13)
                  AND ($8::text IS NULL OR pod_uid IS NULL OR pod_uid = $8) AND {is_left}
                FOR UPDATE
            ), past AS (
                INSERT INTO attempts (submission_id, attempt, state, exit_code, reason, message, names, pod_uid, node,
                                      pod_ip, queued_at, started_at, finished_at, pod_millicores, pod_memory_bytes,
                                      pod_since, pod_ended_at)
                SELECT id, attempt, $3, $5, $6, $7, names, coalesce($8, pod_uid), coalesce($9, node),
                       coalesce($10, pod_ip), coalesce(queued_at, created_at), least(coalesce(started_at, {started}), ended), ended,
                       coalesce($16, pod_millicores), coalesce($17, pod_memory_bytes), coalesce(pod_since, {since}), {ended}
                FROM old
            ), next AS (
                UPDATE submissions s SET
                    attempt = old.attempt + 1, state = 'QUEUED', exit_code = NULL, reason = NULL, message = NULL,
                    pod_uid = NULL, node = NULL, pod_ip = NULL, started_at = NULL, queued_at = old.ended,
                    pod_millicores = NULL, pod_memory_bytes = NULL, pod_since = NULL, pod_ended_at = NULL,
                    claimed_by = CASE WHEN old.queue IS NOT NULL THEN {UNADMITTED} WHEN old.sealed THEN {UNCLAIMED_SEALED} ELSE {UNCLAIMED_NOW} END, claim_epoch = old.claim_epoch + 1, failed_tries = 0,
                    {counted}
                    not_before = due,
                    deadline = CASE WHEN old.queue IS NULL THEN due + make_interval(secs => old.start_timeout) END,
                    queue_deadline = due + make_interval(secs => old.queue_timeout), admitted_at = NULL,
                    queue_rank = CASE WHEN old.queue IS NOT NULL THEN {rank} END
                FROM old WHERE s.id = old.id
                RETURNING s.id, s.attempt, s.not_before, s.tenant, old.state AS was
            ), logged AS (
                INSERT INTO submission_events (submission_id, attempt, state, reason, message)
                SELECT * FROM (
                    SELECT id, attempt - 1, $3, $6, $7 FROM next
                    UNION ALL SELECT id, attempt, 'QUEUED', $12, 'attempt ' || attempt || ' follows' FROM next
                ) AS events (id, attempt, state, reason, message) ORDER BY attempt
            )
            SELECT attempt, not_before, tenant, was FROM next
            "#
    )
}

impl Store {
    /// Ends an attempt and queues the next one, in one statement, if the retry budget for this kind of failure is not used up
    /// and no kill was requested. Otherwise it changes nothing. The guards are those of [`Store::advance`].
    ///
    /// It also takes the row from the replica that has claimed it: later writes of that replica concern the previous attempt.
    pub(super) async fn retry(
        &self,
        id: &SubmissionId,
        attempt: i32,
        claim: Option<i64>,
        outcome: &Outcome,
        kind: RetryKind,
        placement: &Placement,
    ) -> Result<bool, Error> {
        let from = State::ALL.into_iter().filter(|from| from.may_become(outcome.state) && *from != State::Killing);
        let reservation = placement.reservation;
        let next: Option<(i32, DateTime<Utc>, String, String)> = within(
            "recording the end of an attempt",
            sqlx::query_as(sqlx::AssertSqlSafe(statement(kind)))
                .bind(id.as_str())
                .bind(attempt)
                .bind(outcome.state.as_str())
                .bind(words(from))
                .bind(outcome.exit_code)
                .bind(outcome.reason.as_deref().map(kept))
                .bind(kept(&outcome.message))
                .bind(&placement.pod_uid)
                .bind(&placement.node)
                .bind(&placement.pod_ip)
                .bind(placement.started_at)
                .bind(REASON)
                .bind(claim)
                .bind(PAUSE)
                .bind(PAUSE_MAX)
                .bind(reservation.map(|reservation| reservation.millicores))
                .bind(reservation.map(|reservation| reservation.memory_bytes))
                .bind(reservation.and_then(|reservation| reservation.since))
                .bind(placement.ended_at)
                .fetch_optional(&self.patient),
        )
        .await?;
        if let Some((next, due, tenant, was)) = &next {
            metrics().retried.with([text(tenant), code_of(outcome).into()]).inc();
            let state = outcome.state.as_str();
            let end = LoggedChange {
                submission: id.as_str(),
                tenant,
                attempt,
                from: Some(was),
                state,
                exit_code: outcome.exit_code,
                reason: outcome.reason.as_deref(),
                message: Some(&outcome.message),
            };
            end.log();
            let queued = State::Queued.as_str();
            let (exit_code, reason, message) = (None, Some(REASON), None);
            LoggedChange { attempt: *next, from: Some(state), state: queued, exit_code, reason, message, ..end }.log();
            tracing::info!(submission = %id, attempt = next, %due, "another attempt queued");
        }
        Ok(next.is_some())
    }
}
