//! `GET /v1/submissions/{id}/events`

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};

use super::{
    Problem, Reply,
    event::EventList,
    events::{LIMIT, LIMIT_MAX, after},
    id::{Id, not_found},
    params::Params,
    problem::ProblemBody,
};
use crate::api::AppState;

/// List the events of a submission
///
/// All state changes of every attempt.
#[utoipa::path(
    get, path = "/v1/submissions/{id}/events", tag = "Events", operation_id = "listSubmissionEvents",
    params(
        ("id" = String, Path, description = "The submission's id", pattern = "^driver-[0-9-]+$"),
        ("after" = Option<i64>, Query, description = "Only events with a higher `sequence`: `next` of the previous page", minimum = 0),
        ("limit" = Option<u32>, Query, description = "Page size; 100 by default", minimum = 1, maximum = 500),
    ),
    responses(
        (status = 200, description = "One page", body = EventList<'_>),
        (status = 304, description = "The page still matches `If-None-Match`"),
        (status = 400, description = "A parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is no such submission", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn events(
    State(state): State<AppState>,
    Id(id): Id,
    mut params: Params,
) -> Result<Response, Problem> {
    let after = after(params.take("after")?.as_deref())?.unwrap_or(0);
    let limit = params.limit(LIMIT, LIMIT_MAX)?;
    params.finish()?;
    let changes = state.service.events.submission_events(&id, after, limit).await?.ok_or_else(|| not_found(&id))?;
    Ok(Reply::ok(EventList::new(&changes.items, changes.next)).into_response())
}
