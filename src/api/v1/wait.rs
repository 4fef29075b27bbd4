//! `GET /v1/submissions/{id}/wait`

use axum::{extract::State, http::HeaderName};

use super::{
    Problem, Reply,
    events::seconds,
    id::{Id, find, not_found},
    model::Submission,
    params::Params,
    problem::ProblemBody,
};
use crate::{
    api::AppState,
    service::{Target, Waited},
};

const PATIENCE: u64 = 30;
const WAITED: HeaderName = HeaderName::from_static("sparkgate-wait");

/// Wait for a submission
///
/// Answers when the submission has ended, has reached `state` or passed it, or when the timeout is over; `Sparkgate-Wait`
/// says which. After `timeout`, the client repeats the request.
#[utoipa::path(
    get, path = "/v1/submissions/{id}/wait", tag = "Submissions", operation_id = "waitForSubmission",
    params(
        ("id" = String, Path, description = "The submission's id", pattern = "^driver-[0-9-]+$"),
        ("timeoutSeconds" = Option<u64>, Query, description = "How long to wait; 30 by default", maximum = 60),
        ("state" = Option<super::model::State>, Query, description = "The state to wait for, unless the submission ends before; its end by default"),
    ),
    responses(
        (status = 200, description = "The submission as it is now", body = Submission, headers(("Sparkgate-Wait", description = "`done`, or `timeout` if the state isn't reached yet"))),
        (status = 400, description = "A parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "No submission has this id", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Too many clients wait already; try again, or try another replica", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn wait(
    State(state): State<AppState>,
    Id(id): Id,
    mut params: Params,
) -> Result<Reply<Submission>, Problem> {
    let target = params.parse("state", "a state such as RUNNING")?.map_or(Target::End, Target::Reached);
    let patience = seconds(&mut params, "timeoutSeconds", PATIENCE)?;
    params.finish()?;
    let waited = match state.gateway.wait(&id, target, patience, state.settings.max_subscribers).await? {
        Waited::Done => "done",
        Waited::NotYet => "timeout",
        Waited::Unknown => return Err(not_found(&id)),
    };
    let submission = find(&state.gateway, &id).await?;
    let document = match submission.state.is_terminal() {
        true => {
            let why = state.gateway.why(&submission).await?;
            Submission::with(submission, why)
        }
        false => submission.into(),
    };
    Ok(Reply::ok(document).with_header(WAITED, waited))
}
