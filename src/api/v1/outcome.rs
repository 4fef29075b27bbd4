//! `GET /v1/submissions/{id}/outcome`

use axum::extract::State;

use super::{
    Problem, Reply,
    id::{Id, find},
    model::Submission,
    params::Params,
    problem::{Code, ProblemBody},
};
use crate::{api::AppState, submission};

/// Get the outcome of a submission
///
/// For sensors that distinguish three responses: not ended yet (404), succeeded (200), failed (424).
#[utoipa::path(
    get, path = "/v1/submissions/{id}/outcome", tag = "Submissions", operation_id = "getOutcome",
    params(("id" = String, Path, description = "The submission's id", pattern = "^driver-[0-9-]+$")),
    responses(
        (status = 200, description = "It finished with exit code 0", body = Submission),
        (status = 304, description = "The document still matches `If-None-Match`"),
        (status = 404, description = "It hasn't ended yet (`not-finished`), or no submission has this id (`submission-not-found`)", body = ProblemBody, content_type = "application/problem+json"),
        (status = 424, description = "It failed, or was killed or lost; the problem has the submission as its member `submission`", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn outcome(
    State(state): State<AppState>,
    Id(id): Id,
    params: Params,
) -> Result<Reply<Submission>, Problem> {
    params.finish()?;
    let submission = find(&state.service, &id).await?;
    let ended = submission.state;
    let why = if ended.is_terminal() { state.service.submissions.failure_reason(&submission).await? } else { None };
    let document = Submission::with(submission, why);
    match ended {
        submission::State::Finished => Ok(Reply::ok(document)),
        state if state.is_terminal() => {
            let why = document.failure.as_ref().map(|failure| failure.message.clone()).unwrap_or_default();
            let value = serde_json::to_value(&document).map_err(|error| Problem::internal(error.to_string()))?;
            Err(Problem::new(Code::SubmissionFailed, format!("{id} ended as {state}: {why}")).with("submission", value))
        }
        state => Err(Problem::new(Code::NotFinished, format!("{id} is {state}; try again later."))),
    }
}
