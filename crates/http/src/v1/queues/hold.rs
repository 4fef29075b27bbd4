//! A queued submission is held, and released.

use axum::{body::Bytes, extract::State};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{parsed, reason};
use crate::v1::{reply::Reply, submissions::document::Submission};
use sparkgate_service::{self as service, HoldAnswer};
use sparkgate_submission::SubmissionId;
use sparkgate_web::{
    id::{Id, not_found},
    problem::{Code, Problem, ProblemBody, responses::SubmissionProblems},
    query::{NoParameters, Query},
    session::Caller,
    state::AppState,
};

/// Why submissions are held.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::v1) struct NewHold {
    /// For people.
    #[schema(example = "the source table is being repaired", max_length = 256)]
    reason: Option<String>,
}

impl NewHold {
    /// Reads the reason of a body, which may be empty.
    pub(super) fn reason_of(body: &[u8]) -> Result<Option<String>, Problem> {
        let new: Self = if body.is_empty() { Self::default() } else { parsed(body, "a hold")? };
        Ok(reason(new.reason.as_deref())?.map(str::to_owned))
    }
}

/// Hold a queued submission
///
/// It isn't launched before it is released, and its time limits don't run. Its state is still `QUEUED`, and the code of `waiting` is
/// `HELD`. Repeating the request changes nothing.
#[utoipa::path(
    put, path = "/v1/submissions/{id}/hold", tag = "Queues", operation_id = "holdSubmission", params(Id),
    request_body(content = Option<NewHold>),
    responses(
        SubmissionProblems,
        (status = 200, description = "It is held", body = Submission),
        (status = 409, description = "It isn't queued any more", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn hold(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    _: Query<NoParameters>,
    body: Bytes,
) -> Result<Reply<Submission>, Problem> {
    let reason = NewHold::reason_of(&body)?;
    let submission = changed(&id, state.service.queues.hold(&caller, &id, reason.as_deref()).await?, "is held")?;
    if submission.held.is_none() {
        let detail = format!("Submission {id} is {}: only a queued one can be held.", submission.state);
        return Err(Problem::new(Code::NotQueued, detail));
    }
    Ok(Reply::ok(submission.into()))
}

/// Release a held submission
///
/// It has its old place in its queue again, and its time limits begin anew. Repeating the request changes nothing.
#[utoipa::path(
    delete, path = "/v1/submissions/{id}/hold", tag = "Queues", operation_id = "releaseSubmission", params(Id),
    responses(SubmissionProblems, (status = 200, description = "It isn't held", body = Submission))
)]
pub(in crate::v1) async fn release(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    _: Query<NoParameters>,
) -> Result<Reply<Submission>, Problem> {
    let answer = state.service.queues.release(&caller, &id).await?;
    Ok(Reply::ok(changed(&id, answer, "is released")?.into()))
}

/// Returns the submission after a change. `what` became of it is for the problem of a row that this release can't read.
pub(super) fn changed(id: &SubmissionId, answer: HoldAnswer, what: &str) -> Result<service::Submission, Problem> {
    let found = answer.submission.ok_or_else(|| not_found(id))?;
    found.document.map_err(|error| Problem::unreadable(id, what, &error))
}
