//! Attempts: past ones, the current one, and its objects.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{QueryBuilder, types::Json};

use super::{
    claim::Claimed,
    error::{Error, within},
    row::parse,
    scoped::Scoped,
    sealed::Sealed,
    store::Store,
};
use sparkgate_spark::DriverNames;
use sparkgate_submission::{State, SubmissionId};

/// One attempt of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    pub attempt: i32,
    pub state: State,
    pub exit_code: Option<i32>,
    pub reason: Option<String>,
    pub message: Option<String>,
    /// The name of the driver pod.
    pub pod: String,
    pub pod_uid: Option<String>,
    pub node: Option<String>,
    pub pod_ip: Option<String>,
    pub queued_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
    /// What its launch changed in its objects.
    pub launch_changes: Option<Value>,
}

/// The source of an attempt's objects: those of the previous attempt, and their names.
#[derive(Debug, Clone)]
pub struct Before {
    pub attempt: i32,
    pub names: DriverNames,
    /// As JSON.
    pub manifest: String,
    /// The same with their secrets. The others are without them then.
    pub sealed: Option<Sealed>,
}

#[derive(sqlx::FromRow)]
pub(super) struct Row {
    attempt: i32,
    state: String,
    exit_code: Option<i32>,
    reason: Option<String>,
    message: Option<String>,
    pod: String,
    pod_uid: Option<String>,
    node: Option<String>,
    pod_ip: Option<String>,
    queued_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    /// Traces leave it out.
    #[sqlx(default)]
    changes: Option<Json<Value>>,
}

impl Scoped {
    /// Returns all attempts of a submission, the current one last; none if no submission has this id. An attempt without
    /// objects has no pod name yet.
    pub async fn attempts(&self, id: &SubmissionId) -> Result<Vec<AttemptRecord>, Error> {
        let action = "reading a submission's attempts";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::new("WITH found AS (SELECT * FROM submissions s WHERE id = ");
        query.push_bind(id.as_str()).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(
            "), every AS (
                 SELECT a.attempt, a.state, a.exit_code, a.reason, a.message, a.names, a.pod_uid, a.node, a.pod_ip,
                        coalesce(a.queued_at, a.finished_at) AS queued_at, a.started_at, a.finished_at
                 FROM attempts a JOIN found ON found.id = submission_id
                 UNION ALL
                 SELECT attempt, state, exit_code, reason, message, names, pod_uid, node, pod_ip,
                        coalesce(queued_at, created_at), started_at, finished_at
                 FROM found
             )
             SELECT *, CASE WHEN names IS DISTINCT FROM lag(names) OVER (ORDER BY attempt)
                 THEN coalesce(names ->> 'driverPod', '') ELSE '' END AS pod
             FROM every
             LEFT JOIN LATERAL (SELECT o.changes FROM attempt_overlays o JOIN found ON found.id = o.submission_id
                 WHERE o.attempt = every.attempt) AS overlay ON true
             ORDER BY attempt",
        );
        let rows: Vec<Row> = within(action, query.build_query_as().fetch_all(&mut *connection)).await?;
        rows.into_iter().map(|row| row.read(id.as_str())).collect()
    }
}

impl Store {
    /// Returns the objects and names of the last attempt before the claimed one that has some; `None` if none are stored.
    pub async fn attempt_before(&self, claimed: &Claimed) -> Result<Option<Before>, Error> {
        let statement = sqlx::query_as(
            "SELECT attempt, names, objects, sealed_key, sealed
             FROM attempts a JOIN manifests m USING (submission_id, attempt)
             WHERE submission_id = $1 AND attempt < $2 ORDER BY attempt DESC LIMIT 1",
        )
        .bind(claimed.id.as_str())
        .bind(claimed.attempt)
        .fetch_optional(&self.patient);
        type Columns = (i32, Json<DriverNames>, String, Option<String>, Option<Vec<u8>>);
        let row: Option<Columns> = within("reading the previous attempt", statement).await?;
        Ok(row.map(|(attempt, names, manifest, key, text)| {
            let sealed = key.zip(text).map(|(key, text)| Sealed { key, text });
            Before { attempt, names: names.0, manifest, sealed }
        }))
    }

    /// Records what the launch of the claimed attempt changes in its objects. `false` if the claim is lost.
    pub async fn record_launch_changes(&self, claimed: &Claimed, changes: &Value) -> Result<bool, Error> {
        let statement = sqlx::query(
            "INSERT INTO attempt_overlays (submission_id, attempt, changes)
             SELECT id, attempt, $4 FROM submissions WHERE id = $1 AND attempt = $2 AND claim_epoch = $3
             ON CONFLICT (submission_id, attempt) DO UPDATE SET changes = excluded.changes",
        )
        .bind(claimed.id.as_str())
        .bind(claimed.attempt)
        .bind(claimed.epoch)
        .bind(Json(changes))
        .execute(&self.patient);
        Ok(within("recording the changes of a launch", statement).await?.rows_affected() == 1)
    }

    /// Stores the names and objects of the claimed attempt, before anything of it is created, and removes encrypted objects of
    /// earlier attempts: later ones are derived from these. `false` if the claim is lost, or if they are stored already.
    pub async fn keep_attempt(
        &self,
        claimed: &Claimed,
        names: &DriverNames,
        manifest: &str,
        sealed: Option<&Sealed>,
    ) -> Result<bool, Error> {
        let statement = sqlx::query(
            "WITH ours AS (
                 UPDATE submissions SET names = $4, sealed = sealed OR $6 IS NOT NULL
                 WHERE id = $1 AND attempt = $2 AND claim_epoch = $3
                   AND NOT EXISTS (SELECT FROM manifests WHERE submission_id = $1 AND attempt = $2)
                 RETURNING id, sealed
             ), dropped AS (
                 UPDATE manifests m SET sealed = NULL, sealed_key = NULL FROM ours
                 WHERE ours.sealed AND m.submission_id = $1 AND m.attempt < $2 AND m.sealed IS NOT NULL
             )
             INSERT INTO manifests (submission_id, attempt, objects, sealed_key, sealed) SELECT id, $2, $5, $6, $7 FROM ours",
        )
        .bind(claimed.id.as_str())
        .bind(claimed.attempt)
        .bind(claimed.epoch)
        .bind(Json(names))
        .bind(manifest)
        .bind(sealed.map(|sealed| &sealed.key))
        .bind(sealed.map(|sealed| &sealed.text))
        .execute(&self.patient);
        Ok(within("storing the objects of another attempt", statement).await?.rows_affected() == 1)
    }
}

impl Row {
    /// Converts a row of the submission `id`.
    pub(super) fn read(self, id: &str) -> Result<AttemptRecord, Error> {
        Ok(AttemptRecord {
            attempt: self.attempt,
            state: parse(id, &self.state)?,
            exit_code: self.exit_code,
            reason: self.reason,
            message: self.message,
            pod: self.pod,
            pod_uid: self.pod_uid,
            node: self.node,
            pod_ip: self.pod_ip,
            queued_at: self.queued_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            launch_changes: self.changes.map(|Json(changes)| changes),
        })
    }
}
