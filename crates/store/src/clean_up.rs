//! Clean-up: driver pods and rows of submissions that ended long enough ago.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{
    claim::LONGEST_PAUSE,
    error::{Error, within},
    row::{BELIEVED, ends},
    store::Store,
    usage::{COLUMNS, Settled, kept, pods},
};

/// The driver pod of an ended attempt, as recorded in its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedPod {
    pub submission: String,
    pub attempt: i32,
    pub namespace: String,
    pub pod: String,
    pub uid: String,
    /// Its objects as JSON, if some of them were created before the pod, which may not own them.
    pub manifest: Option<String>,
}

impl Store {
    /// Returns about `limit` driver pods that aren't deleted yet, of submissions and earlier attempts that ended at least `age`
    /// ago, oldest first: of each namespace the same share, and of `except` none. Pods that a client of another API owns aren't among
    /// them. Returns none while the clock of the database is past `believed_until`.
    pub async fn ended_pods(
        &self,
        age: Duration,
        limit: u32,
        except: &[String],
        believed_until: Option<DateTime<Utc>>,
    ) -> Result<Vec<EndedPod>, Error> {
        // An index can be used with `now()`, which is constant during a statement, but not with `clock_timestamp()`.
        let with_pod = "finished_at IS NOT NULL AND pod_uid IS NOT NULL AND pod_deleted_at IS NULL";
        let due = format!(
            "(clean_up_not_before IS NULL OR clean_up_not_before <= now()
              OR clean_up_not_before > now() + make_interval(secs => {LONGEST_PAUSE})) AND {BELIEVED}"
        );
        let rows: Vec<(String, i32, String, String, String, Option<String>)> = within(
            "listing the driver pods of ended submissions",
            sqlx::query_as(sqlx::AssertSqlSafe(format!(
                "WITH RECURSIVE here (namespace) AS (
                 (SELECT namespace FROM submissions WHERE {with_pod} ORDER BY namespace, finished_at LIMIT 1)
                 UNION ALL
                 SELECT next.namespace FROM here CROSS JOIN LATERAL (
                     SELECT namespace FROM submissions WHERE {with_pod} AND namespace > here.namespace
                     ORDER BY namespace, finished_at LIMIT 1) AS next
             ), share AS MATERIALIZED (
                 SELECT namespace, ceil($3::numeric / count(*) OVER ())::bigint AS most
                 FROM here WHERE namespace <> ALL ($5)
             ), present AS (
                 SELECT found.* FROM share CROSS JOIN LATERAL (
                     SELECT id, attempt, namespace, names, pod_uid, finished_at FROM submissions
                     WHERE namespace = share.namespace AND {with_pod}
                       AND finished_at <= now() - make_interval(secs => $1) AND state = ANY($2)
                       AND wire IS DISTINCT FROM 'kubeflow'
                       AND {due}
                     ORDER BY finished_at LIMIT share.most) AS found
             ), past AS (
                 SELECT id, a.attempt, namespace, a.names, a.pod_uid, a.finished_at
                 FROM attempts a JOIN submissions ON id = submission_id
                 WHERE a.finished_at <= now() - make_interval(secs => $1)
                   AND a.pod_uid IS NOT NULL AND a.pod_deleted_at IS NULL AND namespace <> ALL ($5)
                   AND {due}
                 ORDER BY a.finished_at LIMIT $3
             )
             SELECT id, ended.attempt, namespace, coalesce(names ->> 'driverPod', ''), pod_uid,
                    CASE WHEN objects NOT LIKE '{{\"before\":[]%' THEN objects END
             FROM (SELECT * FROM present UNION ALL SELECT * FROM past) AS ended
             LEFT JOIN manifests m ON m.submission_id = id AND m.attempt = ended.attempt
             ORDER BY finished_at",
            )))
            .bind(age.as_secs_f64())
            .bind(ends())
            .bind(i64::from(limit))
            .bind(believed_until)
            .bind(except)
            .fetch_all(&self.patient),
        )
        .await?;
        let pod = |(submission, attempt, namespace, pod, uid, manifest)| EndedPod {
            submission,
            attempt,
            namespace,
            pod,
            uid,
            manifest,
        };
        Ok(rows.into_iter().map(pod).collect())
    }

    /// Records that the driver pods of these attempts were deleted. Objects from which another attempt would be derived remain
    /// until the submission has ended. A locked row is skipped, and its pod is due again.
    pub async fn note_pods_deleted(&self, attempts: &[(&str, i32)]) -> Result<(), Error> {
        let (submissions, attempts): (Vec<_>, Vec<_>) = attempts.iter().copied().unzip();
        within(
            "recording deleted driver pods",
            sqlx::query(
                "WITH these AS (
                 SELECT id, state FROM submissions WHERE id = ANY($1) ORDER BY number
                 FOR NO KEY UPDATE SKIP LOCKED
             ), deleted AS (
                 SELECT id, state, attempt FROM these JOIN unnest($1, $3) AS named (submission, attempt) ON id = submission
             ), needless AS (
                 DELETE FROM manifests m USING deleted d
                 WHERE submission_id = id AND m.attempt = d.attempt AND state = ANY($2)
                   AND objects LIKE '{\"before\":[]%'
             ), past AS (
                 UPDATE attempts a SET pod_deleted_at = clock_timestamp()
                 FROM deleted d WHERE a.submission_id = id AND a.attempt = d.attempt
             )
             UPDATE submissions s SET pod_deleted_at = clock_timestamp(), clean_up_not_before = NULL
             FROM deleted d WHERE s.id = d.id AND s.attempt = d.attempt",
            )
            .bind(submissions)
            .bind(ends())
            .bind(attempts)
            .execute(&self.patient),
        )
        .await?;
        Ok(())
    }

    /// Postpones the deletion of the driver pods of these submissions by `delay`, at most 15 minutes. A locked row is skipped.
    pub async fn put_clean_up_off(&self, submissions: &[&str], delay: Duration) -> Result<(), Error> {
        within(
            "postponing the deletion of driver pods",
            sqlx::query(sqlx::AssertSqlSafe(format!(
                "WITH these AS (
                 SELECT id FROM submissions WHERE id = ANY($1) ORDER BY number FOR NO KEY UPDATE SKIP LOCKED
             )
             UPDATE submissions s
             SET clean_up_not_before = clock_timestamp() + make_interval(secs => least($2, {LONGEST_PAUSE}))
             FROM these WHERE s.id = these.id",
            )))
            .bind(submissions)
            .bind(delay.as_secs_f64())
            .execute(&self.patient),
        )
        .await?;
        Ok(())
    }

    /// Deletes up to `limit` submissions that ended at least `age` ago, with all their data, oldest first. What they used is
    /// settled before. A submission remains
    /// if its pod may exist, unless a client of another API owns the pod, or if its pod was deleted a moment ago, because the watch may still report it. Deletes none while
    /// the clock of the database is past `believed_until`.
    pub async fn delete_ended(
        &self,
        age: Duration,
        limit: u32,
        believed_until: Option<DateTime<Utc>>,
    ) -> Result<u64, Error> {
        let Settled { until, version } = self.usage_settled().await?;
        let (pods, kept) = (pods("unsettled"), kept());
        let deleted = within(
            "deleting old submissions",
            sqlx::query(sqlx::AssertSqlSafe(format!(
                "WITH settled AS (
                 UPDATE usage_settled SET version = version + 1 WHERE version = $5 RETURNING true
             ), old AS (
                 SELECT {COLUMNS}, settled AS is_settled FROM submissions
                 WHERE finished_at <= now() - make_interval(secs => $1) AND state = ANY($2) AND {BELIEVED}
                   AND EXISTS (SELECT FROM settled) AND (pod_uid IS NULL OR wire = 'kubeflow' OR pod_deleted_at <= now() - interval '1 minute')
                   AND NOT EXISTS (SELECT FROM attempts a WHERE a.submission_id = submissions.id AND a.pod_uid IS NOT NULL
                       AND (a.pod_deleted_at > now() - interval '1 minute') IS NOT FALSE)
                 ORDER BY finished_at LIMIT $3 FOR UPDATE SKIP LOCKED
             ), unsettled AS (SELECT * FROM old WHERE NOT coalesce(is_settled, finished_at < $6)), {pods}, {kept}
             DELETE FROM submissions s USING old WHERE s.id = old.id",
            )))
            .bind(age.as_secs_f64())
            .bind(ends())
            .bind(i64::from(limit))
            .bind(believed_until)
            .bind(version)
            .bind(until)
            .execute(&self.patient),
        )
        .await?;
        Ok(deleted.rows_affected())
    }
}
