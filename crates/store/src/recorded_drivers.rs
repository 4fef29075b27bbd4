//! Driver pods, and whether the attempts that they are recorded for have ended.

use std::time::Duration;

use super::{
    error::{Error, within},
    store::Store,
};
use sparkgate_submission::SubmissionId;

/// A driver pod that is recorded for its attempt.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct RecordedDriver {
    pub pod_uid: String,
    /// The end of its attempt is recorded.
    pub has_ended: bool,
    /// Spark's id of its application.
    pub application: String,
}

/// The pod of a driver whose end was recorded a short while ago.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct RecentEnd {
    pub namespace: String,
    pub pod: String,
    pub pod_uid: String,
}

impl Store {
    /// Returns the pods of up to `limit` attempts of a namespace, or of all, that ended in the last `age`, the latest first. Pods that were
    /// deleted by the clean-up aren't among them.
    pub async fn recent_ends(
        &self,
        namespace: Option<&str>,
        age: Duration,
        limit: u32,
    ) -> Result<Vec<RecentEnd>, Error> {
        let statement = sqlx::query_as(
            "SELECT namespace, coalesce(names ->> 'driverPod', '') AS pod, pod_uid FROM (
                 (SELECT namespace, names, pod_uid, finished_at FROM submissions
                  WHERE finished_at > now() - make_interval(secs => $2) AND pod_uid IS NOT NULL AND pod_deleted_at IS NULL
                    AND ($1::text IS NULL OR namespace = $1)
                  ORDER BY finished_at DESC LIMIT $3)
                 UNION ALL
                 -- Attempts that another one followed.
                 (SELECT s.namespace, a.names, a.pod_uid, a.finished_at
                  FROM attempts a JOIN submissions s ON s.id = a.submission_id
                  WHERE a.finished_at > now() - make_interval(secs => $2) AND a.pod_uid IS NOT NULL AND a.pod_deleted_at IS NULL
                    AND ($1::text IS NULL OR s.namespace = $1)
                  ORDER BY a.finished_at DESC LIMIT $3)
             ) AS ended ORDER BY finished_at DESC LIMIT $3",
        )
        .bind(namespace)
        .bind(age.as_secs_f64())
        .bind(i64::from(limit))
        .fetch_all(&self.patient);
        within("looking for drivers that ended a short while ago", statement).await
    }

    /// Returns those of these driver pods, by submission, attempt and uid, that are recorded for that attempt. What a pod says of
    /// itself proves nothing.
    pub async fn recorded_drivers(&self, pods: &[(&SubmissionId, i32, &str)]) -> Result<Vec<RecordedDriver>, Error> {
        let statement = sqlx::query_as(
            "SELECT uid AS pod_uid,
                    s.attempt > of_attempt OR s.state IN ('FINISHED', 'FAILED', 'KILLED', 'ERROR', 'LOST') AS has_ended,
                    coalesce(CASE WHEN s.attempt = of_attempt THEN s.names ELSE a.names END ->> 'appId', '') AS application
             FROM unnest($1::text[], $2::integer[], $3::text[]) AS pod (of_id, of_attempt, uid)
             JOIN submissions s ON s.id = of_id
             LEFT JOIN attempts a ON a.submission_id = of_id AND a.attempt = of_attempt
             WHERE uid = CASE WHEN s.attempt = of_attempt THEN s.pod_uid ELSE a.pod_uid END",
        )
        .bind(pods.iter().map(|(id, ..)| id.as_str()).collect::<Vec<_>>())
        .bind(pods.iter().map(|(_, attempt, _)| *attempt).collect::<Vec<_>>())
        .bind(pods.iter().map(|(.., uid)| *uid).collect::<Vec<_>>())
        .fetch_all(&self.patient);
        within("reading whether drivers have ended", statement).await
    }
}
