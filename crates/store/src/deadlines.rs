//! Timeouts: rows store the time at which they expire, so no process has to remember it.

use chrono::{DateTime, Utc};
use sqlx::types::Json;

use super::{
    error::{Error, within},
    kill::killed,
    no_room::waited_for,
    sealed::{DROPPED, NEEDLESS},
    state_log::{CHANGED, ChangedRow},
    store::Store,
};
use sparkgate_submission::KillCause;

/// The result of one round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overdue {
    /// Submissions that are being killed now, or have ended immediately.
    pub killed: u64,
    /// More may be overdue right now.
    pub more: bool,
}

/// Seconds in a readable unit.
pub(super) const IN_WORDS: &str = "CASE WHEN seconds % 3600 = 0 THEN seconds / 3600 || 'h'
    WHEN seconds % 60 = 0 THEN seconds / 60 || 'm' ELSE seconds || 's' END";

/// A deadline that is this much later than its timeout allows was written by a clock that was ahead. Attempts pause for less.
const IMPOSSIBLE: &str = "interval '20 minutes'";

/// Returns when an attempt of the row `of` started, if it did, as its node reported in `said`: not before it was queued and not
/// in the future, because the clock of a node may be wrong, and the run timeout counts from there. Kubernetes truncates times to
/// whole seconds, so that a start in the second in which the attempt was queued is reported as one before that. If it was queued in
/// the future, the clock of the database was ahead then, and the node is believed.
pub(super) fn started(said: &str, of: &str) -> String {
    let queued = format!("coalesce({of}.queued_at, {of}.created_at)");
    let queued = format!("CASE WHEN {queued} <= clock_timestamp() THEN {queued} END");
    format!(
        "CASE WHEN {said} < {queued} AND {said} > {queued} - interval '1 s'
         THEN least({said} + interval '1 s', clock_timestamp())
         WHEN {said} IS NOT NULL THEN least(greatest({said}, {queued}), clock_timestamp()) END"
    )
}

impl Store {
    /// Kills up to `limit` submissions whose start or run timeout has expired, as a request would; the most overdue first.
    ///
    /// The start time decides whether a running submission is overdue: the deadline in its row may be that of its start, if a
    /// release that knows no deadlines moved it to RUNNING. The deadline of such a row is corrected. A start before the
    /// submission was queued, or in the future, comes from the wrong clock of a node, and is limited to that range.
    ///
    /// If a submission waits for room, and has a budget for that, only its attempt ends, and another one follows.
    ///
    /// Nothing is overdue while the clock of the database is past `believed_until`.
    pub async fn kill_overdue(&self, limit: u32, believed_until: Option<DateTime<Utc>>) -> Result<Overdue, Error> {
        let started = started("started_at", "submissions");
        let (killed, no_room) = (killed(), waited_for());
        let statement = format!(
            r#"
            WITH overdue AS (
                SELECT id, state AS was, coalesce(reason || ': ', '') || nullif(message, '') AS waited_for,
                       CASE state WHEN 'RUNNING' THEN run_timeout ELSE start_timeout END AS seconds,
                       CASE state WHEN 'RUNNING' THEN {started} + make_interval(secs => run_timeout) ELSE deadline END AS due,
                       {no_room} AS budget
                FROM submissions
                WHERE deadline <= now() AND ($4::timestamptz IS NULL OR now() <= $4) AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING')
                ORDER BY deadline LIMIT $1 FOR UPDATE SKIP LOCKED
            ), words AS (
                SELECT id AS of, CASE was
                    WHEN 'RUNNING' THEN 'still running after ' || {IN_WORDS} || ': killed'
                    ELSE 'not running within ' || coalesce({IN_WORDS}, 'its time') || coalesce(': ' || waited_for, '')
                END AS words, CASE was WHEN 'RUNNING' THEN $3 ELSE $2 END AS cause
                FROM overdue
            ), moved AS (
                UPDATE submissions s SET {killed}, kill_cause = cause, reason = cause, message = words,
                    no_room = budget
                FROM overdue JOIN words ON of = id WHERE s.id = overdue.id AND due <= now()
                RETURNING s.id, s.tenant, s.attempt, overdue.was, s.state, s.reason, s.message, {NEEDLESS} AS needless
            ), {DROPPED}, logged AS (
                INSERT INTO submission_events (submission_id, attempt, state, reason, message)
                SELECT id, attempt, state, reason, message FROM moved
            ), corrected AS (
                UPDATE submissions s SET deadline = due FROM overdue WHERE s.id = overdue.id AND (due <= now()) IS NOT TRUE
            )
            SELECT {CHANGED}, (SELECT count(*) FROM overdue)
            "#
        );
        let (moved, found): (Json<Vec<ChangedRow>>, i64) = within(
            "killing overdue submissions",
            sqlx::query_as(sqlx::AssertSqlSafe(statement))
                .bind(i64::from(limit))
                .bind(KillCause::START_TIMEOUT)
                .bind(KillCause::RUN_TIMEOUT)
                .bind(believed_until)
                .fetch_one(&self.patient),
        )
        .await?;
        moved.iter().for_each(ChangedRow::record);
        Ok(Overdue { killed: moved.len() as u64, more: found >= i64::from(limit) })
    }

    /// Lets the timeouts of up to `limit` submissions begin now, whose deadlines are impossibly late because the clock of the
    /// database was ahead when they were written. `local` is the time of this machine: if it is later, the clock of the database
    /// may be behind, and nothing is late. Returns how many there were.
    pub async fn bring_deadlines_back(
        &self,
        limit: u32,
        local: DateTime<Utc>,
        believed_until: Option<DateTime<Utc>>,
    ) -> Result<u64, Error> {
        let timeout = "make_interval(secs => CASE state WHEN 'RUNNING' THEN run_timeout ELSE start_timeout END)";
        let statement = format!(
            "UPDATE submissions SET deadline = greatest(now(), $2) + {timeout}, started_at = least(started_at, now())
             WHERE id IN (
                 SELECT id FROM submissions
                 WHERE deadline > greatest(now(), $2) + {timeout} + {IMPOSSIBLE} AND ($3::timestamptz IS NULL OR now() <= $3)
                   AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING')
                 LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED)"
        );
        let statement = sqlx::query(sqlx::AssertSqlSafe(statement));
        let statement = statement.bind(i64::from(limit)).bind(local).bind(believed_until).execute(&self.patient);
        Ok(within("correcting deadlines", statement).await?.rows_affected())
    }
}
