//! An executor as the API represents it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::submission::ExecutorRecord;

/// One executor of one attempt, as last seen in the cluster.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct Executor {
    /// Spark's executor id, the label `spark-exec-id`.
    #[schema(example = 1)]
    id: i64,
    #[schema(example = 1)]
    attempt: i32,
    /// UNKNOWN, PENDING, RUNNING, SUCCEEDED, FAILED or DELETED.
    #[schema(example = "RUNNING")]
    state: &'static str,
    pod: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// One word: how the executor ended, or why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<DateTime<Utc>>,
}

impl From<ExecutorRecord> for Executor {
    fn from(record: ExecutorRecord) -> Self {
        Self {
            id: record.executor_id,
            attempt: record.attempt,
            state: record.state.as_str(),
            pod: record.pod_name,
            node: record.node,
            exit_code: record.exit_code,
            reason: record.reason,
            message: record.message,
            created_at: record.created_at,
            started_at: record.started_at,
            finished_at: record.finished_at,
        }
    }
}
