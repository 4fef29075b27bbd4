//! Finds the pod that writes a log: that of an attempt's driver, or of an executor.

use super::{Error, Store, error::within, row::ends};
use sparkgate_submission::{ExecutorState, SubmissionId};

/// The pod that writes a log, or wrote it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct LogTarget {
    pub attempt: i32,
    pub namespace: String,
    /// The pod's name.
    pub pod: String,
    /// Unknown until the pod is created.
    pub pod_uid: Option<String>,
    /// The end of the driver or executor is recorded.
    pub ended: bool,
    /// Clean-up deleted the pod.
    pub pod_deleted: bool,
}

impl Store {
    /// Returns the driver of an attempt, by default of the current one. `None` if there is no such attempt.
    pub async fn driver_log(&self, id: &SubmissionId, attempt: Option<i32>) -> Result<Option<LogTarget>, Error> {
        let action = "looking for a driver's log";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_as(
            "SELECT attempt, namespace, coalesce(names ->> 'driverPod', '') AS pod, pod_uid, state = ANY($3) AS ended,
                    pod_deleted_at IS NOT NULL AS pod_deleted
             FROM submissions WHERE id = $1 AND ($2::integer IS NULL OR attempt = $2)
             UNION ALL
             SELECT a.attempt, namespace, coalesce(a.names ->> 'driverPod', ''), a.pod_uid, true,
                    a.pod_deleted_at IS NOT NULL
             FROM attempts a JOIN submissions ON id = submission_id WHERE submission_id = $1 AND a.attempt = $2",
        )
        .bind(id.as_str())
        .bind(attempt)
        .bind(ends())
        .fetch_optional(&mut *connection);
        within(action, statement).await
    }

    /// Returns an executor of an attempt, by default of the current one. `None` if no such executor was observed.
    pub async fn executor_log(
        &self,
        id: &SubmissionId,
        attempt: Option<i32>,
        executor: i64,
    ) -> Result<Option<LogTarget>, Error> {
        let action = "looking for an executor's log";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_as(
            "SELECT e.attempt, namespace, pod_name AS pod, e.pod_uid, false AS pod_deleted,
                    e.state <> ALL($4) OR s.state = ANY($5) OR s.attempt > e.attempt AS ended
             FROM executors e JOIN submissions s ON id = submission_id
             WHERE submission_id = $1 AND e.attempt = coalesce($2, s.attempt) AND executor_id = $3",
        )
        .bind(id.as_str())
        .bind(attempt)
        .bind(executor)
        .bind(ExecutorState::LIVE.map(ExecutorState::as_str))
        .bind(ends())
        .fetch_optional(&mut *connection);
        within(action, statement).await
    }
}
