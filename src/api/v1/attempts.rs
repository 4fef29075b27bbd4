//! `GET /v1/submissions/{id}/attempts`

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Problem, Reply,
    id::{Id, not_found},
    model::Attempt,
    params::Params,
    problem::ProblemBody,
};
use crate::api::AppState;

/// All attempts, in ascending order.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct AttemptList {
    items: Vec<Attempt>,
}

/// List the attempts of a submission
///
/// There is one attempt, plus one for each retry that was needed.
#[utoipa::path(
    get, path = "/v1/submissions/{id}/attempts", tag = "Submissions", operation_id = "listAttempts",
    params(("id" = String, Path, description = "The submission's id", pattern = "^driver-[0-9-]+$")),
    responses(
        (status = 200, description = "All attempts; the last one is the current one", body = AttemptList),
        (status = 304, description = "The document still matches `If-None-Match`"),
        (status = 400, description = "A parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is no such submission", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn attempts(
    State(state): State<AppState>,
    Id(id): Id,
    params: Params,
) -> Result<Reply<AttemptList>, Problem> {
    params.finish()?;
    let attempts = state.service.submissions.attempts(&id).await?;
    if attempts.is_empty() {
        return Err(not_found(&id));
    }
    Ok(Reply::ok(AttemptList { items: attempts.into_iter().map(Attempt::from).collect() }))
}
