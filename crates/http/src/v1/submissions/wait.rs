//! Waiting for a submission, and its outcome.

use std::time::Duration;

use axum::{extract::State, http::HeaderName};
use serde::{Deserialize, Deserializer, de::Error as _};
use utoipa::IntoParams;

use super::document::{State as StateWord, Submission};
use crate::v1::reply::Reply;
use sparkgate_service::{Target, Waited};
use sparkgate_submission as submission;
use sparkgate_web::{
    id::{Id, find, not_found},
    problem::{Code, Problem, ProblemBody, responses::SubmissionProblems},
    query::{NoParameters, Query, seconds},
    session::Caller,
    state::AppState,
};

const PATIENCE: Duration = Duration::from_secs(30);
const WAITED: HeaderName = HeaderName::from_static("sparkgate-wait");

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(in crate::v1) struct WaitQuery {
    /// How long to wait; 30 by default
    #[serde(deserialize_with = "seconds")]
    #[param(value_type = Option<u64>, maximum = 60)]
    timeout_seconds: Option<Duration>,
    /// The state to wait for, in upper or lower case, unless the submission ends before; its end by default
    #[serde(deserialize_with = "state")]
    #[param(value_type = Option<StateWord>)]
    state: Option<submission::State>,
}

/// Wait for a submission
///
/// Answers when the submission has ended, has reached `state` or passed it, or when the timeout is over; `Sparkgate-Wait`
/// says which. After `timeout`, the client repeats the request.
#[utoipa::path(
    get, path = "/v1/submissions/{id}/wait", tag = "Submissions", operation_id = "waitForSubmission",
    params(Id, WaitQuery),
    responses(
        SubmissionProblems,
        (status = 200, description = "The submission as it is now", body = Submission, headers(("Sparkgate-Wait", description = "`done`, or `timeout` if the state isn't reached yet"))),
        (status = 429, description = "Too many clients wait already; try again, or try another replica", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn wait(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    Query(query): Query<WaitQuery>,
) -> Result<Reply<Submission>, Problem> {
    let target = query.state.map_or(Target::End, Target::Reached);
    let patience = query.timeout_seconds.unwrap_or(PATIENCE);
    let waited = match state.service.events.wait(&caller, &id, target, patience, state.settings.max_subscribers).await?
    {
        Waited::Done => "done",
        Waited::NotYet => "timeout",
        Waited::Unknown => return Err(not_found(&id)),
    };
    let submission = find(&state.service, &caller, &id).await?;
    let document = match submission.state.is_terminal() {
        true => {
            let why = state.service.submissions.failure_reason(&submission).await?;
            Submission::with(submission, why)
        }
        false => submission.into(),
    };
    Ok(Reply::ok(document).with_header(WAITED, waited))
}

/// Get the outcome of a submission
///
/// For sensors that distinguish three responses: not ended yet (404), succeeded (200), failed (424).
#[utoipa::path(
    get, path = "/v1/submissions/{id}/outcome", tag = "Submissions", operation_id = "getOutcome", params(Id),
    responses(
        SubmissionProblems,
        (status = 200, description = "It finished with exit code 0", body = Submission),
        (status = 304, description = "The document still matches `If-None-Match`"),
        (status = 404, description = "It hasn't ended yet (`not-finished`), or no submission has this id (`submission-not-found`)", body = ProblemBody, content_type = "application/problem+json"),
        (status = 424, description = "It failed, or was killed or lost; the problem has the submission as its member `submission`", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn outcome(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    _: Query<NoParameters>,
) -> Result<Reply<Submission>, Problem> {
    let submission = find(&state.service, &caller, &id).await?;
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

fn state<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<submission::State>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let state = text.to_ascii_uppercase().parse();
    state.map(Some).map_err(|_| D::Error::custom(format!("{text:?} is not a state such as RUNNING")))
}
