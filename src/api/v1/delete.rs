//! `DELETE /v1/submissions/{id}`

use axum::{extract::State, http::StatusCode};
use tracing::Instrument;

use super::{
    Problem, Reply,
    id::{Id, not_found},
    model::Submission,
    params::Params,
    problem::ProblemBody,
};
use crate::{
    api::AppState,
    service::{Found, KillAnswer},
};

/// Kill a submission
///
/// Works in every state; repeating the request changes nothing. The record is kept.
#[utoipa::path(
    delete, path = "/v1/submissions/{id}", tag = "Submissions", operation_id = "killSubmissionResource",
    params(("id" = String, Path, description = "The submission's id", pattern = "^driver-[0-9-]+$")),
    responses(
        (status = 200, description = "It has already ended", body = Submission),
        (status = 202, description = "The kill is recorded; the state is `KILLING` until the driver is gone", body = Submission),
        (status = 404, description = "No submission has this id", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached; trying again is safe", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn delete(
    State(state): State<AppState>,
    Id(id): Id,
    params: Params,
) -> Result<Reply<Submission>, Problem> {
    params.finish()?;
    let service = state.service;
    // In its own task, so that the kill is recorded even if the client disconnects.
    let asked = id.clone();
    let kill = tokio::spawn(async move { service.submissions.request_kill(&asked).await }.in_current_span());
    let KillAnswer { live, submission } = kill.await.map_err(|error| Problem::broken_off(error.to_string()))??;
    let Found { document, .. } = submission.ok_or_else(|| not_found(&id))?;
    let (status, what) =
        if live { (StatusCode::ACCEPTED, "will be ended") } else { (StatusCode::OK, "has already ended") };
    let submission = document.map_err(|error| Problem::unreadable(&id, what, &error))?;
    Ok(Reply::ok(submission.into()).with_status(status))
}
