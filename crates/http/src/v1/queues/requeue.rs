//! A submission that waits moves to another queue, or changes its priority.

use axum::{body::Bytes, extract::State};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{hold::changed, parsed};
use crate::v1::{reply::Reply, submissions::document::Submission};
use sparkgate_service::NewPlace;
use sparkgate_submission::queues::PRIORITIES;
use sparkgate_web::{
    id::Id,
    problem::{Code, Problem, ProblemBody, responses::SubmissionProblems},
    query::{NoParameters, Query},
    session::Caller,
    state::AppState,
};

/// Where a submission is to wait. One of the fields is required.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewPlace)]
pub(in crate::v1) struct Place {
    /// Another queue that its tenant may use; without it, its present one.
    #[schema(example = "interactive")]
    queue: Option<String>,
    /// Its priority there; without it, that of the other queue, or its present one.
    #[schema(minimum = 0, maximum = 1000)]
    priority: Option<i32>,
}

/// Returns the place that a request names.
///
/// # Errors
/// It names none, or the priority isn't one.
pub(super) fn new_place(queue: Option<String>, priority: Option<i32>) -> Result<NewPlace, Problem> {
    if queue.is_none() && priority.is_none() {
        return Err(Problem::new(Code::InvalidRequest, "The request names neither a queue nor a priority."));
    }
    check_priority(priority)?;
    Ok(NewPlace { queue, priority })
}

/// Checks the field `priority` of a request.
///
/// # Errors
/// It isn't one.
pub(in crate::v1) fn check_priority(priority: Option<i32>) -> Result<(), Problem> {
    if priority.is_none_or(|priority| PRIORITIES.contains(&priority)) {
        return Ok(());
    }
    let reason = format!("it must be from {} to {}", PRIORITIES.start(), PRIORITIES.end());
    Err(Problem::field("#/priority".to_owned(), reason))
}

/// Move a submission that waits to another queue, or change its priority
///
/// In the other queue it waits behind the submissions of its tenant that were accepted before it. The time that it may wait in its queue
/// begins anew.
#[utoipa::path(
    put, path = "/v1/submissions/{id}/queue", tag = "Queues", operation_id = "requeueSubmission", params(Id),
    request_body = Place,
    responses(
        SubmissionProblems,
        (status = 200, description = "It waits in this queue, with this priority", body = Submission),
        (status = 409, description = "It doesn't wait in a queue", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "Its tenant may not use the queue, the queue doesn't permit the priority, or the submission would never fit", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn requeue(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    _: Query<NoParameters>,
    body: Bytes,
) -> Result<Reply<Submission>, Problem> {
    let Place { queue, priority } = parsed(&body, "a place in a queue")?;
    let place = new_place(queue, priority)?;
    let answer = state.service.queues.requeue(&caller, &id, &place).await?;
    let is_moved = answer.changed;
    let submission = changed(&id, answer, "is moved")?;
    if !is_moved {
        let detail = format!("Submission {id} doesn't wait in a queue: it is {}.", submission.state);
        return Err(Problem::new(Code::NotQueued, detail));
    }
    Ok(Reply::ok(submission.into()))
}
