//! Queues another attempt after one that failed.

use chrono::{DateTime, Utc};

use super::{
    claim::UNCLAIMED_NOW,
    counted_ends::{code, code_of},
    deadlines::started,
    error::{Error, within},
    no_room::{CAPACITY_LEFT, FOLLOWED, QUOTA_LEFT},
    row::words,
    sealed::UNCLAIMED_SEALED,
    state_log::LoggedChange,
    store::Store,
    unadmitted::{UNADMITTED, queue_rank},
    usage::ended,
};
use sparkgate_metrics::{metrics, text};
use sparkgate_submission::{FailureCode, Outcome, Placement, RetryKind, State, SubmissionId, kept};

/// Pause before the first retry in seconds, doubled for each further one up to the maximum.
const PAUSE: f64 = 10.0;
const PAUSE_MAX: f64 = 300.0;

/// The restarts since a run of at least ten minutes, which starts their pauses anew.
const SINCE_GOOD_RUN: &str =
    "CASE WHEN started_at < clock_timestamp() - interval '10 minutes' THEN 0 ELSE restarts END";

/// What permits another attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permission {
    Retry(RetryKind),
    /// The submission is restarted whenever it ends.
    Restart,
    /// It was killed because there was no room for it.
    NoRoom,
}

impl Permission {
    /// Returns the reason of the event that queues the attempt.
    fn reason(self) -> &'static str {
        match self {
            Self::Retry(_) | Self::NoRoom => "Retry",
            Self::Restart => "Restart",
        }
    }
}

/// The condition that the end of a row in the state `$3` is followed by a restart, which its request asks for. A kill that was accepted
/// comes first. The request, which is large, is read at ends only.
pub(super) const RESTARTED: &str = "state <> 'KILLING' AND $3 IN ('FAILED', 'LOST', 'FINISHED') AND CASE request #>> '{sparkProperties,spark.sparkgate.restart}'
    WHEN 'onFailure' THEN $3 <> 'FINISHED'
    WHEN 'always' THEN true END";
/// How often a row may run out of memory, as its request says; NULL if it says nothing.
const MEMORY_RETRIES: &str = "(request #>> '{sparkProperties,spark.sparkgate.memoryGrowth.retries}')::integer";

/// The condition that each attempt has a pod name of its own.
const UNFIXED: &str = "request #>> '{sparkProperties,spark.kubernetes.driver.pod.name}' IS NULL";

/// Returns the statement of [`Store::retry`], which binds its parameters in their order.
fn statement(permission: Permission) -> String {
    // Memory ran out: that of the driver, or that of an executor, which ends with 52 if its heap is full (`SparkExitCode.OOM`). If only
    // a worker of Python was killed, the executor goes on, and all failures of a task may be its.
    let by_memory = format!(
        "{MEMORY_RETRIES} IS NOT NULL AND ($20 OR EXISTS (SELECT FROM executors e WHERE e.submission_id = submissions.id
             AND e.attempt = submissions.attempt AND (e.reason = 'OOMKilled' OR e.exit_code = 52)))"
    );
    const PAUSED: &str =
        "retried_infrastructure + retried_application + retried_memory + retried_capacity + retried_quota";
    // The condition for another attempt, what it counts, and how often the pause was doubled.
    let (is_left, counted, doubled) = match permission {
        Permission::Retry(RetryKind::Infrastructure) => (
            "retried_infrastructure < max_retries_infrastructure".to_owned(),
            "retried_infrastructure = old.retried_infrastructure + 1,".to_owned(),
            PAUSED,
        ),
        Permission::Retry(RetryKind::Application) => (
            format!(
                "CASE WHEN {by_memory} THEN retried_memory < {MEMORY_RETRIES}
                 ELSE retried_application < max_retries_application END"
            ),
            "retried_memory = old.retried_memory + old.by_memory::integer,
             retried_application = old.retried_application + (NOT old.by_memory)::integer,"
                .to_owned(),
            PAUSED,
        ),
        Permission::Retry(RetryKind::Capacity) => {
            (CAPACITY_LEFT.to_owned(), "retried_capacity = old.retried_capacity + 1,".to_owned(), PAUSED)
        }
        Permission::Retry(RetryKind::Quota) => {
            (QUOTA_LEFT.to_owned(), "retried_quota = old.retried_quota + 1,".to_owned(), PAUSED)
        }
        // The budget was left when the attempt was killed.
        Permission::NoRoom => (
            FOLLOWED.to_owned(),
            "retried_capacity = old.retried_capacity + (old.no_room = 'capacity')::integer,
             retried_quota = old.retried_quota + (old.no_room = 'quota')::integer, kill_cause = NULL, no_room = NULL,"
                .to_owned(),
            PAUSED,
        ),
        Permission::Retry(RetryKind::Requeue) => (UNFIXED.to_owned(), String::new(), PAUSED),
        Permission::Restart => (RESTARTED.to_owned(), "restarts = old.since_good_run + 1,".to_owned(), SINCE_GOOD_RUN),
    };
    let (started, since) = (started("$11::timestamptz", "old"), started("$18::timestamptz", "old"));
    let ended = ended("$19::timestamptz", &since, "old");
    let rank = queue_rank("old");
    // `least` would take the end of a driver that never started for its start.
    let began = format!("coalesce(started_at, {started})");
    let began = format!("CASE WHEN {began} IS NOT NULL THEN least({began}, ended) END");
    // The start timeout begins when the pause is over, and in a queue when the attempt is admitted.
    format!(
        r#"
            WITH old AS (
                SELECT *, clock_timestamp() AS ended, ({by_memory}) AS by_memory, {SINCE_GOOD_RUN} AS since_good_run,
                    clock_timestamp() + make_interval(secs => least($14 * 2.0 ^ least({doubled}, 30), $15)) AS due
                FROM submissions
                WHERE id = $1 AND attempt = $2 AND state = ANY($4) AND ($13::bigint IS NULL OR claim_epoch = $13)
                  AND ($8::text IS NULL OR pod_uid IS NULL OR pod_uid = $8) AND {is_left}
                FOR UPDATE
            ), past AS (
                INSERT INTO attempts (submission_id, attempt, state, exit_code, reason, message, names, pod_uid, node,
                                      pod_ip, queued_at, started_at, finished_at, pod_millicores, pod_memory_bytes,
                                      pod_since, pod_ended_at)
                SELECT id, attempt, $3, $5, $6, $7, names, coalesce($8, pod_uid), coalesce($9, node),
                       coalesce($10, pod_ip), coalesce(queued_at, created_at), {began}, ended,
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
    /// Ends an attempt and queues the next one, in one statement, if that is permitted: the retry budget for this kind of failure is
    /// not used up, or the submission is restarted. No kill may have been requested. Otherwise it changes nothing. The guards are those of [`Store::advance`].
    ///
    /// It also takes the row from the replica that has claimed it: later writes of that replica concern the previous attempt.
    pub(super) async fn retry(
        &self,
        id: &SubmissionId,
        attempt: i32,
        claim: Option<i64>,
        outcome: &Outcome,
        permission: Permission,
        placement: &Placement,
    ) -> Result<bool, Error> {
        // A kill ends the submission, except that of a driver that didn't start in time.
        let is_kill = permission == Permission::NoRoom;
        let from = State::ALL.into_iter().filter(|from| from.may_become(outcome.state));
        let from = from.filter(|from| (*from == State::Killing) == is_kill);
        let reservation = placement.reservation;
        let next: Option<(i32, DateTime<Utc>, String, String)> = within(
            "recording the end of an attempt",
            sqlx::query_as(sqlx::AssertSqlSafe(statement(permission)))
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
                .bind(permission.reason())
                .bind(claim)
                .bind(PAUSE)
                .bind(PAUSE_MAX)
                .bind(reservation.map(|reservation| reservation.millicores))
                .bind(reservation.map(|reservation| reservation.memory_bytes))
                .bind(reservation.and_then(|reservation| reservation.since))
                .bind(placement.ended_at)
                .bind(code(outcome) == Some(FailureCode::OutOfMemory))
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
            let (exit_code, reason, message) = (None, Some(permission.reason()), None);
            LoggedChange { attempt: *next, from: Some(state), state: queued, exit_code, reason, message, ..end }.log();
            tracing::info!(submission = %id, attempt = next, %due, "another attempt queued");
        }
        Ok(next.is_some())
    }
}
