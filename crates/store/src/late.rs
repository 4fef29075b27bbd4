//! Runs that take longer than expected.

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::{
    deadlines::IN_WORDS,
    error::{Error, within},
    state_log::LoggedChange,
    store::Store,
};
use sparkgate_submission::{LATE, State};

/// A run that was reported because it takes longer than expected.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct LateRun {
    pub id: String,
    pub attempt: i32,
    pub tenant: String,
    pub message: String,
}

/// That a run takes longer than expected, and since when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Lateness {
    pub reported_at: DateTime<Utc>,
    /// The expected duration, in seconds.
    pub seconds: i32,
    /// Of how many earlier runs it is the median; `None` if the request says it.
    pub runs: Option<i32>,
}

impl Store {
    /// Records for up to `limit` runs that have gone on for a minute when they become late: after the duration that the request names, or
    /// after three times the median of the last 20 successful runs of the same name in the tenant, if there are five. A submission that
    /// is restarted whenever it ends is late only by its request. Returns how many there were.
    pub async fn expect_ends(&self, limit: u32) -> Result<u64, Error> {
        let statement = sqlx::query(
            "INSERT INTO expected_ends (submission_id, attempt, seconds, runs, late_at)
             SELECT id, attempt, seconds, CASE WHEN asked IS NULL THEN runs END,
                 started_at + make_interval(secs => CASE WHEN asked IS NULL THEN 3 * seconds ELSE seconds END)
             FROM (
                 SELECT s.id, s.attempt, s.started_at, asked, runs, coalesce(asked, CASE WHEN runs >= 5 THEN greatest(median, 20) END) AS seconds
                 FROM (
                     SELECT id, attempt, started_at, tenant, name, (request #>> '{sparkProperties,spark.sparkgate.expectedDuration}')::integer AS asked,
                         coalesce(request #>> '{sparkProperties,spark.sparkgate.restart}' = 'always', false) AS is_endless
                     FROM submissions s
                     WHERE state = 'RUNNING' AND started_at < clock_timestamp() - interval '1 minute' AND NOT EXISTS (
                         SELECT FROM expected_ends e WHERE e.submission_id = s.id AND e.attempt = s.attempt)
                     LIMIT $1
                 ) s LEFT JOIN LATERAL (
                     SELECT count(*)::integer AS runs, round(percentile_cont(0.5) WITHIN GROUP (ORDER BY took))::integer AS median
                     FROM (
                         SELECT extract(epoch FROM finished_at - started_at) AS took FROM submissions p
                         WHERE p.tenant = s.tenant AND p.name = s.name AND p.state = 'FINISHED' AND p.started_at IS NOT NULL
                         ORDER BY number DESC LIMIT 20
                     ) AS earlier
                 ) AS history ON asked IS NULL AND NOT is_endless AND s.name <> ''
             ) AS expected
             ON CONFLICT DO NOTHING",
        );
        let done = statement.bind(i64::from(limit)).execute(&self.patient);
        Ok(within("recording when runs become late", done).await?.rows_affected())
    }

    /// Reports up to `limit` runs that are late: each gets an event with the reason `Late`, once. Nothing is late while the clock of the
    /// database is past `believed_until`.
    pub async fn report_late(&self, limit: u32, believed_until: DateTime<Utc>) -> Result<Vec<LateRun>, Error> {
        let statement = format!(
            "WITH due AS (
                 SELECT submission_id, attempt, seconds, runs FROM expected_ends
                 WHERE late_at <= now() AND now() <= $2 ORDER BY late_at LIMIT $1 FOR UPDATE SKIP LOCKED
             ), running AS (
                 -- The end of an attempt waits, so that its event follows this one.
                 SELECT s.id, s.attempt, s.tenant, 'still running: ' || CASE WHEN runs IS NULL THEN {IN_WORDS} || ' were expected'
                     ELSE 'three times as long as the last runs of its name: ' || {IN_WORDS} || ' is the median of ' || runs END AS message
                 FROM due JOIN submissions s ON s.id = submission_id AND s.attempt = due.attempt
                 WHERE s.state = 'RUNNING' FOR NO KEY UPDATE OF s
             ), reported AS (
                 UPDATE expected_ends e SET late_at = NULL, reported_at = CASE WHEN running.id IS NOT NULL THEN clock_timestamp() END
                 FROM due LEFT JOIN running ON running.id = due.submission_id
                 WHERE e.submission_id = due.submission_id AND e.attempt = due.attempt
             ), logged AS (
                 INSERT INTO submission_events (submission_id, attempt, state, reason, message)
                 SELECT id, attempt, 'RUNNING', '{LATE}', message FROM running
             )
             SELECT id, attempt, tenant, message FROM running"
        );
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(i64::from(limit)).bind(believed_until);
        let late: Vec<LateRun> = within("reporting late runs", statement.fetch_all(&self.patient)).await?;
        for LateRun { id, attempt, tenant, message } in &late {
            let running = State::Running.as_str();
            let (from, exit_code, reason, message) = (Some(running), None, Some(LATE), Some(message.as_str()));
            LoggedChange {
                submission: id,
                tenant,
                attempt: *attempt,
                from,
                state: running,
                exit_code,
                reason,
                message,
            }
            .log();
        }
        Ok(late)
    }
}
