//! The attempts of a submission, and the Kubernetes objects of one.

use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::{
    launch_changes::{self, LaunchChange},
    reply::Reply,
    submissions::{document::State as StateWord, failure::Why},
};
use sparkgate_service as service;
use sparkgate_web::{
    id::{Id, find, not_found},
    problem::{Code, Problem, ProblemBody, responses::SubmissionProblems},
    query::{NoParameters, Query, attempt},
    session::Caller,
    state::AppState,
};

/// One attempt to run the application, with its own driver pod.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attempt {
    #[schema(example = 1)]
    attempt: i32,
    state: StateWord,
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
    /// What its launch changed in its objects, such as the nodes that a queue of Kueue assigned.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    launch_changes: Vec<LaunchChange>,
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
            launch_changes: launch_changes::read(row.launch_changes),
        }
    }
}

/// All attempts, in ascending order.
#[derive(Serialize, ToSchema)]
pub(super) struct AttemptList {
    items: Vec<Attempt>,
}

/// List the attempts of a submission
///
/// There is one attempt, plus one for each retry that was needed.
#[utoipa::path(
    get, path = "/v1/submissions/{id}/attempts", tag = "Submissions", operation_id = "listAttempts", params(Id),
    responses(
        SubmissionProblems,
        (status = 200, description = "All attempts; the last one is the current one", body = AttemptList),
        (status = 304, description = "The document still matches `If-None-Match`"),
    )
)]
pub(super) async fn attempts(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    _: Query<NoParameters>,
) -> Result<Reply<AttemptList>, Problem> {
    let attempts = state.service.submissions.attempts(&caller, &id).await?;
    if attempts.is_empty() {
        return Err(not_found(&id));
    }
    Ok(Reply::ok(AttemptList { items: attempts.into_iter().map(Attempt::from).collect() }))
}

/// A Kubernetes `List`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectList {
    #[schema(example = "v1")]
    api_version: &'static str,
    #[schema(example = "List")]
    kind: &'static str,
    /// Kubernetes objects, in the order of their creation.
    #[schema(value_type = Vec<Object>)]
    items: Vec<Value>,
}

impl From<Vec<Value>> for ObjectList {
    fn from(items: Vec<Value>) -> Self {
        Self { api_version: "v1", kind: "List", items }
    }
}

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ManifestQuery {
    /// Which attempt; the latest by default
    #[serde(deserialize_with = "attempt")]
    #[param(minimum = 1)]
    attempt: Option<i32>,
}

/// Get the Kubernetes objects of an attempt
///
/// The objects as they are sent to Kubernetes, in that order. They are kept as long as the driver's pod.
#[utoipa::path(
    get, path = "/v1/submissions/{id}/manifest", tag = "Submissions", operation_id = "getManifest",
    params(Id, ManifestQuery),
    responses(
        SubmissionProblems,
        (status = 200, description = "The objects", body = ObjectList),
        (status = 304, description = "The document still matches `If-None-Match`"),
        (status = 404, description = "There is no such submission or attempt, or its pod is gone", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn manifest(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    Query(query): Query<ManifestQuery>,
) -> Result<Reply<ObjectList>, Problem> {
    let submission = find(&state.service, &caller, &id).await?;
    let attempt = query.attempt.unwrap_or(submission.attempt);
    let objects = state.service.submissions.manifest(&caller, &id, attempt).await?.ok_or_else(|| {
        let detail =
            format!("No objects of attempt {attempt} of {id} are kept: they are deleted with the driver's pod.");
        Problem::new(Code::ManifestNotFound, detail)
    })?;
    Ok(Reply::ok(objects.into()))
}
