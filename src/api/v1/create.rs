//! `POST /v1/submissions`

use axum::{
    extract::{Request, State},
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use tracing::Instrument;

use super::{
    Problem, Reply, dry_run,
    model::{NewSubmission, Submission},
    params::Params,
    problem::ProblemBody,
    request,
};
use crate::{api::AppState, service::Found};

const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// Submit an application
///
/// Answers as soon as the submission is committed; the driver is created afterwards. With an `Idempotency-Key` the same
/// request can be sent any number of times and creates one submission.
#[utoipa::path(
    post, path = "/v1/submissions", tag = "Submissions", operation_id = "createSubmissionResource",
    request_body = NewSubmission,
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Makes the request safe to repeat; unique per owner for as long as the submission is kept", example = "etl/2026-01-02"),
        ("dryRun" = Option<bool>, Query, description = "Return what would be created, without storing anything"),
    ),
    responses(
        (status = 200, description = "The submission that the same request with this key created earlier (`Idempotency-Replayed: true`), or the result of a dry run", body = dry_run::Created),
        (status = 201, description = "Committed; it will be run", body = Submission, headers(("Location", description = "Path of the submission"), ("ETag", description = "Entity tag of the document"))),
        (status = 400, description = "The request is invalid; the problem names the fields", body = ProblemBody, content_type = "application/problem+json"),
        (status = 409, description = "A live submission already has this unique name", body = ProblemBody, content_type = "application/problem+json"),
        (status = 413, description = "The body is too large", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body isn't JSON", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "The idempotency key was used for another request", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached (`unavailable`: nothing was stored, try again), or its connection was lost during the write (`in-doubt`: the submission may have been accepted)", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn create(
    State(state): State<AppState>,
    mut params: Params,
    request: Request,
) -> Result<Response, Problem> {
    let is_dry_run = params.parse("dryRun", "true or false")?.unwrap_or(false);
    params.finish()?;
    let (request, options) = request::read(&state, request).await?;
    if is_dry_run {
        return dry_run::dry_run(&state.gateway, request, options).await.map(IntoResponse::into_response);
    }
    // In its own task, so that a client that disconnects can't leave the submission half accepted.
    let gateway = state.gateway;
    let submit = tokio::spawn(async move { gateway.submit(request, options).await }.in_current_span());
    let accepted = submit.await.map_err(|error| Problem::in_doubt(None, error.to_string()))??;
    let Found { id, document } = accepted.submission;
    let submission =
        document.map_err(|error| Problem::unreadable(&id, "was accepted before under this key", &error))?;
    let location = format!("/v1/submissions/{id}");
    let mut submission = Submission::from(submission);
    submission.warnings = accepted.warnings;
    let reply = Reply::ok(submission).with_header(header::LOCATION, location);
    let reply = match accepted.replayed {
        true => reply.with_header(REPLAYED, "true"),
        false => reply.with_status(StatusCode::CREATED),
    };
    Ok(reply.into_response())
}
