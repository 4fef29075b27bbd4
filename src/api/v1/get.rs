//! `GET /v1/submissions/{id}`

use axum::extract::State;

use super::{
    Problem, Reply,
    id::{Id, find},
    model::Submission,
    params::Params,
    problem::ProblemBody,
};
use crate::api::AppState;

/// Get a submission
///
/// A submission can be read from the moment that it is accepted until its retention ends, long after its pod is gone.
#[utoipa::path(
    get, path = "/v1/submissions/{id}", tag = "Submissions", operation_id = "getSubmission",
    params(("id" = String, Path, description = "The submission's id", pattern = "^driver-[0-9-]+$")),
    responses(
        (status = 200, description = "The submission", body = Submission, headers(("ETag", description = "Entity tag of the document"))),
        (status = 304, description = "The document still matches `If-None-Match`"),
        (status = 404, description = "No submission has this id", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn get(
    State(state): State<AppState>,
    Id(id): Id,
    params: Params,
) -> Result<Reply<Submission>, Problem> {
    params.finish()?;
    let submission = find(&state.service, &id).await?;
    let why = state.service.submissions.failure_reason(&submission).await?;
    Ok(Reply::ok(Submission::with(submission, why)))
}
