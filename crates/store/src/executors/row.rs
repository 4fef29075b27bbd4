//! Rows of executors, for writing and for reading.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{error::Error, row::parse};
use sparkgate_submission::{ExecutorRecord, SubmissionId};

/// A row to be written; fields are named as the columns.
#[derive(Serialize)]
pub(super) struct Written<'a> {
    submission_id: &'a str,
    attempt: i32,
    executor_id: i64,
    driver_uid: Option<&'a str>,
    pod_name: &'a str,
    pod_uid: &'a str,
    state: &'a str,
    exit_code: Option<i32>,
    reason: Option<&'a str>,
    message: Option<&'a str>,
    node: Option<&'a str>,
    created_at: Option<DateTime<Utc>>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
    pod_millicores: Option<i64>,
    pod_memory_bytes: Option<i64>,
    pod_since: Option<DateTime<Utc>>,
}

impl<'a> From<&'a ExecutorRecord> for Written<'a> {
    fn from(executor: &'a ExecutorRecord) -> Self {
        Self {
            submission_id: executor.submission.as_str(),
            attempt: executor.attempt,
            executor_id: executor.executor_id,
            driver_uid: executor.driver_uid.as_deref(),
            pod_name: &executor.pod_name,
            pod_uid: &executor.pod_uid,
            state: executor.state.as_str(),
            exit_code: executor.exit_code,
            reason: executor.reason.as_deref(),
            message: executor.message.as_deref(),
            node: executor.node.as_deref(),
            created_at: executor.created_at,
            started_at: executor.started_at,
            finished_at: executor.finished_at,
            pod_millicores: executor.reservation.map(|reservation| reservation.millicores),
            pod_memory_bytes: executor.reservation.map(|reservation| reservation.memory_bytes),
            pod_since: executor.reservation.and_then(|reservation| reservation.since),
        }
    }
}

/// A row that was read.
#[derive(sqlx::FromRow)]
pub(super) struct ExecutorRow {
    attempt: i32,
    executor_id: i64,
    pod_name: String,
    pod_uid: String,
    state: String,
    exit_code: Option<i32>,
    reason: Option<String>,
    message: Option<String>,
    node: Option<String>,
    created_at: Option<DateTime<Utc>>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
}

impl ExecutorRow {
    pub(super) fn of(self, id: &SubmissionId) -> Result<ExecutorRecord, Error> {
        Ok(ExecutorRecord {
            submission: id.clone(),
            attempt: self.attempt,
            executor_id: self.executor_id,
            driver_uid: None,
            pod_name: self.pod_name,
            pod_uid: self.pod_uid,
            state: parse(id.as_str(), &self.state)?,
            exit_code: self.exit_code,
            reason: self.reason,
            message: self.message,
            node: self.node,
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
            // Only statements about usage need it.
            reservation: None,
        })
    }
}
