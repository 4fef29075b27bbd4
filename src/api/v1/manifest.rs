//! `GET /v1/submissions/{id}/manifest`

use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    Problem, Reply,
    id::{Id, find},
    params::Params,
    problem::{Code, ProblemBody},
};
use crate::api::AppState;

/// A Kubernetes `List`.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct ObjectList {
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

/// Get the Kubernetes objects of an attempt
///
/// The objects as they are sent to Kubernetes, in that order. They are kept as long as the driver's pod.
#[utoipa::path(
    get, path = "/v1/submissions/{id}/manifest", tag = "Submissions", operation_id = "getManifest",
    params(
        ("id" = String, Path, description = "The submission's id", pattern = "^driver-[0-9-]+$"),
        ("attempt" = Option<i32>, Query, description = "Which attempt; the latest by default", minimum = 1),
    ),
    responses(
        (status = 200, description = "The objects", body = ObjectList),
        (status = 304, description = "The document still matches `If-None-Match`"),
        (status = 400, description = "A parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is no such submission or attempt, or its pod is gone", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn manifest(
    State(state): State<AppState>,
    Id(id): Id,
    mut params: Params,
) -> Result<Reply<ObjectList>, Problem> {
    let attempt = params.parse("attempt", "the number of an attempt")?;
    params.finish()?;
    let submission = find(&state.service, &id).await?;
    let attempt = attempt.unwrap_or(submission.attempt);
    let objects = state.service.submissions.manifest(&id, attempt).await?.ok_or_else(|| {
        let detail =
            format!("No objects of attempt {attempt} of {id} are kept: they are deleted with the driver's pod.");
        Problem::new(Code::ManifestNotFound, detail)
    })?;
    Ok(Reply::ok(objects.into()))
}
