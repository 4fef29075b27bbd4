//! Claims: which worker may touch a submission's objects, and until when.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use uuid::Uuid;

use super::{Error, Store, row::parse};
use crate::{
    spark::{CreateSubmissionRequest, DriverNames, SparkVersion},
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
    pub namespace: String,
    pub names: DriverNames,
    pub created_at: DateTime<Utc>,
    /// Tries in a row that failed before this one.
    pub failed_tries: i32,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    attempt: i32,
    state: String,
    request: Json<CreateSubmissionRequest>,
    spark_version: String,
    namespace: String,
    names: Json<DriverNames>,
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
            request: row.request.0,
            spark_version: parse(&row.id, &row.spark_version)?,
            namespace: row.namespace,
            names: row.names.0,
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
        let rows: Vec<Row> = sqlx::query_as(
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
            SELECT id, attempt, state, request, spark_version, namespace, names, created_at, failed_tries
            FROM claimed ORDER BY number
            "#,
        )
        .bind(worker)
        .bind(lease.as_secs_f64())
        .bind(limit)
        .fetch_all(&self.pool)
        .await
        .map_err(Error::of("claiming submissions"))?;
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
        sqlx::query(
            "UPDATE submissions SET claimed_by = NULL, claimed_until = NULL, not_before = NULL, failed_tries = 0
             WHERE id = $1 AND claimed_by = $2",
        )
        .bind(id.as_str())
        .bind(worker)
        .execute(&self.pool)
        .await
        .map_err(Error::of("releasing a claim"))?;
        Ok(())
    }

    /// Gives a claim back to be tried again after `delay`, with the reason where a user sees it.
    pub async fn retry_later(
        &self,
        id: &SubmissionId,
        worker: Uuid,
        delay: Duration,
        why: Option<&str>,
    ) -> Result<(), Error> {
        sqlx::query(
            "UPDATE submissions SET claimed_by = NULL, claimed_until = NULL,
                    not_before = clock_timestamp() + make_interval(secs => $3),
                    failed_tries = failed_tries + 1, message = coalesce($4, message)
             WHERE id = $1 AND claimed_by = $2",
        )
        .bind(id.as_str())
        .bind(worker)
        .bind(delay.as_secs_f64())
        .bind(why)
        .execute(&self.pool)
        .await
        .map_err(Error::of("putting a submission off"))?;
        Ok(())
    }
}
