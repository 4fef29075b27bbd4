//! One attempt of a submission.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::{State, Why};
use crate::service;

/// One attempt to run the application, with its own driver pod.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct Attempt {
    #[schema(example = 1)]
    attempt: i32,
    state: State,
    /// The driver pod's name, once it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pod: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Why the attempt failed, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Why>,
    queued_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<DateTime<Utc>>,
}

impl From<service::AttemptRecord> for Attempt {
    fn from(row: service::AttemptRecord) -> Self {
        let why =
            service::FailureReason::ended(row.state, row.exit_code, row.reason.as_deref(), row.message.as_deref());
        Self {
            attempt: row.attempt,
            state: row.state.into(),
            pod: Some(row.pod).filter(|pod| !pod.is_empty()),
            node: row.node,
            exit_code: row.exit_code,
            failure: why.map(Why::from),
            queued_at: row.queued_at,
            started_at: row.started_at.map(|at| at.max(row.queued_at)),
            finished_at: row.finished_at,
        }
    }
}
