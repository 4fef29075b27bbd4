//! Kill requests and Spark's `clear`.

use super::{Error, Store, error::within};
use crate::submission::SubmissionId;

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
        let statement = format!(
            r#"
            WITH live AS (
                SELECT id, state AS was FROM submissions
                WHERE {which} AND state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING', 'KILLING')
                ORDER BY number FOR UPDATE
            ), moved AS (
                UPDATE submissions s SET
                    state = CASE was WHEN 'QUEUED' THEN 'KILLED' ELSE 'KILLING' END,
                    reason = 'Killed', message = 'killed on request', not_before = NULL,
                    finished_at = CASE was WHEN 'QUEUED' THEN clock_timestamp() END
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
                .fetch_one(&mut *connection),
        )
        .await?;
        Ok(live.unsigned_abs())
    }

    /// Spark's `clear`: ended submissions are no longer answered by the status of Spark's protocol.
    pub async fn clear_ended(&self) -> Result<u64, Error> {
        let action = "clearing ended submissions";
        let mut connection = self.connection(action).await?;
        let cleared = within(
            action,
            sqlx::query(
                "UPDATE submissions SET cleared_at = clock_timestamp()
             WHERE cleared_at IS NULL AND state IN ('FINISHED', 'FAILED', 'KILLED', 'ERROR', 'LOST')",
            )
            .execute(&mut *connection),
        )
        .await?;
        Ok(cleared.rows_affected())
    }
}
