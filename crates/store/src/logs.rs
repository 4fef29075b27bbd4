//! Finds the pod that writes a log: that of an attempt's driver, or of an executor.

use sqlx::QueryBuilder;

use super::{
    error::{Error, within},
    row::ends,
    scoped::Scoped,
    store::Store,
};
use sparkgate_submission::{ExecutorState, SubmissionId};

/// The pod that writes a log, or wrote it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct LogTarget {
    pub tenant: String,
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
    /// Returns those of some ids of which there is no submission.
    pub async fn deleted_among(&self, ids: &[String]) -> Result<Vec<String>, Error> {
        let statement = sqlx::query_scalar(
            "SELECT folder FROM unnest($1::text[]) AS o (folder) WHERE NOT EXISTS (SELECT FROM submissions WHERE id = folder)",
        )
        .bind(ids)
        .fetch_all(&self.patient);
        within("looking for logs without a submission", statement).await
    }
}

impl Scoped {
    /// Returns the driver of an attempt, by default of the current one. `None` if there is no such attempt.
    pub async fn driver_log(&self, id: &SubmissionId, attempt: Option<i32>) -> Result<Option<LogTarget>, Error> {
        let action = "looking for a driver's log";
        let mut connection = self.store.connection(action).await?;
        let mut query = QueryBuilder::new("WITH found AS (SELECT * FROM submissions s WHERE id = ");
        query.push_bind(id.as_str()).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        query.push("), asked AS (SELECT ").push_bind(attempt).push("::integer AS wanted), ends AS (SELECT ");
        query.push_bind(ends()).push(
            "::text[] AS states)
             SELECT tenant, attempt, namespace, coalesce(names ->> 'driverPod', '') AS pod, pod_uid, state = ANY(states) AS ended,
                    pod_deleted_at IS NOT NULL AS pod_deleted
             FROM found, asked, ends WHERE wanted IS NULL OR attempt = wanted
             UNION ALL
             SELECT tenant, a.attempt, namespace, coalesce(a.names ->> 'driverPod', ''), a.pod_uid, true,
                    a.pod_deleted_at IS NOT NULL
             FROM attempts a JOIN found ON id = submission_id JOIN asked ON a.attempt = wanted",
        );
        within(action, query.build_query_as().fetch_optional(&mut *connection)).await
    }

    /// Returns an executor of an attempt, by default of the current one. `None` if no such executor was observed.
    pub async fn executor_log(
        &self,
        id: &SubmissionId,
        attempt: Option<i32>,
        executor: i64,
    ) -> Result<Option<LogTarget>, Error> {
        let action = "looking for an executor's log";
        let mut connection = self.store.connection(action).await?;
        let mut query = QueryBuilder::new(
            "SELECT s.tenant, e.attempt, namespace, pod_name AS pod, e.pod_uid, false AS pod_deleted, e.state <> ALL(",
        );
        query.push_bind(ExecutorState::LIVE.map(ExecutorState::as_str)).push(") OR s.state = ANY(").push_bind(ends());
        query.push(
            ") OR s.attempt > e.attempt AS ended
             FROM executors e JOIN submissions s ON id = submission_id WHERE submission_id = ",
        );
        query.push_bind(id.as_str()).push(" AND e.attempt = coalesce(").push_bind(attempt);
        query.push(", s.attempt) AND executor_id = ").push_bind(executor).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        within(action, query.build_query_as().fetch_optional(&mut *connection)).await
    }
}
