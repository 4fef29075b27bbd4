//! Claims: which worker may touch a submission's objects, and until when.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    Error, Store,
    error::within,
    row::{parse, parse_json},
};
use crate::{
    spark::{CreateSubmissionRequest, DriverNames, SparkVersion, SubmitterFiles},
    submission::{State, SubmissionId},
};

/// What a claimed submission needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    Launch,
    Kill,
}

/// A submission that this worker alone may work on until its claim runs out.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub id: SubmissionId,
    pub attempt: i32,
    pub task: Task,
    pub request: CreateSubmissionRequest,
    pub spark_version: SparkVersion,
    /// `SPARK_USER` where the request names none.
    pub spark_user: String,
    pub namespace: String,
    pub names: DriverNames,
    pub submitter: SubmitterFiles,
    /// The driver pod that an earlier try made; from then on no other is ever made for this attempt.
    pub pod_uid: Option<String>,
    pub created_at: DateTime<Utc>,
    /// Tries in a row that failed before this one.
    pub failed_tries: i32,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    attempt: i32,
    state: String,
    request: String,
    spark_version: String,
    spark_user: String,
    namespace: String,
    names: String,
    submitter_files: String,
    pod_uid: Option<String>,
    created_at: DateTime<Utc>,
    failed_tries: i32,
}

impl TryFrom<Row> for Claimed {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        let state: State = parse(&row.id, &row.state)?;
        Ok(Self {
            id: parse(&row.id, &row.id)?,
            attempt: row.attempt,
            task: if state == State::Killing { Task::Kill } else { Task::Launch },
            request: parse_json(&row.id, &row.request)?,
            spark_version: parse(&row.id, &row.spark_version)?,
            spark_user: row.spark_user,
            namespace: row.namespace,
            names: parse_json(&row.id, &row.names)?,
            submitter: parse_json(&row.id, &row.submitter_files)?,
            pod_uid: row.pod_uid,
            created_at: row.created_at,
            failed_tries: row.failed_tries,
        })
    }
}

impl Store {
    /// Claims up to `limit` submissions that wait for a launch or a kill, oldest first. A queued one becomes
    /// `LAUNCHING` here, before anything of it is created. A row that can't be read stays claimed and is logged, so
    /// that it never stops the others.
    pub async fn claim(&self, worker: Uuid, lease: Duration, limit: i64) -> Result<Vec<Claimed>, Error> {
        let rows: Vec<Row> = within(
            "claiming submissions",
            sqlx::query_as(
                r#"
            WITH due AS (
                SELECT id, state AS was FROM submissions
                WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING')
                  AND (claimed_until IS NULL OR claimed_until < clock_timestamp())
                  AND (not_before IS NULL OR not_before <= clock_timestamp())
                ORDER BY number LIMIT $3
                FOR UPDATE SKIP LOCKED
            ), claimed AS (
                UPDATE submissions s
                SET claimed_by = $1, claimed_until = clock_timestamp() + make_interval(secs => $2),
                    state = CASE s.state WHEN 'QUEUED' THEN 'LAUNCHING' ELSE s.state END
                FROM due WHERE s.id = due.id
                RETURNING s.*, due.was
            ), logged AS (
                INSERT INTO submission_events (submission_id, attempt, state)
                SELECT id, attempt, state FROM claimed WHERE was = 'QUEUED'
            )
            SELECT id, attempt, state, request::text AS request, spark_version, spark_user, namespace,
                   names::text AS names, submitter_files::text AS submitter_files, pod_uid, created_at, failed_tries
            FROM claimed ORDER BY number
            "#,
            )
            .bind(worker)
            .bind(lease.as_secs_f64())
            .bind(limit)
            .fetch_all(&self.patient),
        )
        .await?;
        let mut claimed = Vec::with_capacity(rows.len());
        for row in rows {
            match Claimed::try_from(row) {
                Ok(one) => claimed.push(one),
                Err(error) => tracing::error!(error = &error as &dyn std::error::Error, "skipping a submission"),
            }
        }
        Ok(claimed)
    }

    /// Gives a claim back after work that succeeded.
    pub async fn release(&self, id: &SubmissionId, worker: Uuid) -> Result<(), Error> {
        within(
            "releasing a claim",
            sqlx::query(
                "UPDATE submissions SET claimed_by = NULL, claimed_until = NULL, not_before = NULL, failed_tries = 0
             WHERE id = $1 AND claimed_by = $2",
            )
            .bind(id.as_str())
            .bind(worker)
            .execute(&self.patient),
        )
        .await?;
        Ok(())
    }

    /// Gives a claim back to be looked at again after `delay`; with a reason it counts as a failed try and a user sees
    /// it. A kill that was asked for meanwhile doesn't wait for a launch that is put off.
    pub async fn retry_later(
        &self,
        claimed: &Claimed,
        worker: Uuid,
        delay: Duration,
        why: Option<&str>,
    ) -> Result<(), Error> {
        let statement = sqlx::query(
            "UPDATE submissions SET claimed_by = NULL, claimed_until = NULL,
                    not_before = CASE WHEN state <> 'KILLING' OR $5 THEN clock_timestamp() + make_interval(secs => $3) END,
                    failed_tries = CASE WHEN $4::text IS NULL THEN 0 ELSE failed_tries + 1 END,
                    message = coalesce($4, message)
             WHERE id = $1 AND claimed_by = $2",
        )
        .bind(claimed.id.as_str())
        .bind(worker)
        .bind(delay.as_secs_f64())
        .bind(why)
        .bind(claimed.task == Task::Kill)
        .execute(&self.patient);
        within("putting a submission off", statement).await?;
        Ok(())
    }
}
