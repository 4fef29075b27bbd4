//! Kill requests and Spark's `clear`.

use super::{Error, Store, claim::NOBODY, error::within};
use crate::submission::{KillCause, SubmissionId};

/// Submissions that are cleared by one statement.
const ROUND: i64 = 5000;

/// What a kill sets in the row `s`, which `was` in another state: `KILLED` where nothing was created yet, else `KILLING` for a
/// worker to carry out.
pub(super) fn killed() -> String {
    format!(
        "state = CASE was WHEN 'QUEUED' THEN 'KILLED' ELSE 'KILLING' END, not_before = NULL, deadline = NULL,
         -- Launched already: whoever did it has nothing more to do.
         claimed_by = CASE WHEN was IN ('PENDING', 'RUNNING') THEN {NOBODY} ELSE claimed_by END,
         finished_at = CASE was WHEN 'QUEUED' THEN clock_timestamp() END"
    )
}

impl Store {
    /// Asks for the end of one submission: `KILLED` at once where nothing was created yet, else `KILLING` for a worker
    /// to carry out. `false` if there is none of that id or it has ended.
    pub async fn request_kill(&self, id: &SubmissionId) -> Result<bool, Error> {
        Ok(self.kill_where("id = $1", Some(id)).await? > 0)
    }

    /// Asks for the end of every live submission; tells how many there were.
    pub async fn request_kill_of_all(&self) -> Result<u64, Error> {
        self.kill_where("$1::text IS NULL", None).await
    }

    async fn kill_where(&self, which: &'static str, id: Option<&SubmissionId>) -> Result<u64, Error> {
        let killed = killed();
        let statement = format!(
            r#"
            WITH live AS (
                SELECT id, state AS was FROM submissions
                WHERE {which} AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING')
                ORDER BY number FOR UPDATE
            ), moved AS (
                UPDATE submissions s SET {killed}, kill_cause = $2, reason = $2, message = $3
                FROM live WHERE s.id = live.id AND was <> 'KILLING'
                RETURNING s.id, s.attempt, s.state, s.reason, s.message
            ), logged AS (
                INSERT INTO submission_events (submission_id, attempt, state, reason, message)
                SELECT id, attempt, state, reason, message FROM moved
            )
            SELECT count(*) FROM live
            "#
        );
        let action = "recording a kill request";
        let mut connection = self.connection(action).await?;
        let live: i64 = within(
            action,
            sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
                .bind(id.map(SubmissionId::as_str))
                .bind(KillCause::Request.reason())
                .bind(KillCause::Request.message())
                .fetch_one(&mut *connection),
        )
        .await?;
        Ok(live.unsigned_abs())
    }

    /// Spark's `clear`: ended submissions are no longer answered by the status of Spark's protocol. Tells how many there
    /// were; in rounds, so that a million of them is no statement without end.
    pub async fn clear_ended(&self) -> Result<u64, Error> {
        let action = "clearing ended submissions";
        let (mut cleared, mut last) = (0, Some(i64::MIN));
        while let Some(from) = last {
            let mut connection = self.connection(action).await?;
            let round = sqlx::query_as(
                "WITH these AS (
                     SELECT id FROM submissions
                     WHERE number > $1 AND cleared_at IS NULL
                       AND state IN ('FINISHED', 'FAILED', 'KILLED', 'ERROR', 'LOST')
                     ORDER BY number LIMIT $2 FOR NO KEY UPDATE
                 ), cleared AS (
                     UPDATE submissions s SET cleared_at = clock_timestamp() FROM these WHERE s.id = these.id
                     RETURNING number
                 )
                 SELECT count(*), max(number) FROM cleared",
            )
            .bind(from)
            .bind(ROUND)
            .fetch_one(&mut *connection);
            let (count, to): (i64, Option<i64>) = within(action, round).await?;
            // After a round that isn't full nothing is left, and nothing more can fail.
            last = to.filter(|_| count >= ROUND);
            cleared += count.unsigned_abs();
        }
        Ok(cleared)
    }
}
