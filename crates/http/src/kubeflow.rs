//! `POST /api/v1/spark-submit`: the submitter that Kubeflow's Spark operator calls instead of running spark-submit itself. The
//! operator decides by `error_code` whether it tries again, and owns the driver pod once it exists.

mod description;
mod new;

use std::time::Duration;

use axum::{
    Json,
    extract::{Request, State},
    http::{HeaderValue, Method, StatusCode, header},
    response::{IntoResponse, Response},
    routing::any,
};
use chrono::{SecondsFormat, Utc};
use utoipa::OpenApi;

use description::{Application, Refused, Submitted};
use new::NewApplication;
use sparkgate_service::{Error, FailureReason, Filter, Session, Submission, Target, Waited};
use sparkgate_submission::{KillCause, State as SubmissionState, SubmissionId};
use sparkgate_web::{
    change::About,
    face::Face,
    problem::{Code, Problem, Retry},
    request_log::RequestId,
    routes::Routes,
    state::AppState,
    time_limit::answered_within,
};

pub(super) const PATH: &str = "/api/v1/spark-submit";

/// How long a request waits for its pod: less than the two minutes after which the operator gives up a request. Its next request
/// with the same id finds the submission.
const PATIENCE: Duration = Duration::from_secs(75);

/// An error as the operator reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorCode {
    BadRequest,
    InvalidArguments,
    MethodNotAllowed,
    UnsupportedMediaType,
    PodExists,
    InvalidTemplate,
    /// The operator tries again after this one and after the next.
    Internal,
    Overloaded,
}

impl ErrorCode {
    fn row(self) -> (&'static str, u16) {
        match self {
            Self::BadRequest => ("BAD_REQUEST", 400),
            Self::InvalidArguments => ("INVALID_SPARK_SUBMIT_ARGS", 400),
            Self::MethodNotAllowed => ("METHOD_NOT_ALLOWED", 405),
            Self::UnsupportedMediaType => ("UNSUPPORTED_MEDIA_TYPE", 415),
            Self::PodExists => ("DRIVER_POD_ALREADY_EXISTS", 409),
            Self::InvalidTemplate => ("INVALID_POD_TEMPLATE", 422),
            Self::Internal => ("INTERNAL_SERVER_ERROR", 500),
            Self::Overloaded => ("SUBMITTER_OVERLOADED", 503),
        }
    }

    /// Returns the code for a problem: one that the operator tries again after exactly if that may help.
    fn of(problem: &Problem) -> Self {
        let first = problem.errors.first().and_then(|error| error.pointer.as_deref()).unwrap_or_default();
        match problem.code {
            Code::InvalidRequest if first.contains("PodTemplate") || first.contains("pod_template") => {
                Self::InvalidTemplate
            }
            Code::InvalidRequest if first.is_empty() || first.starts_with("#/submission_id") => Self::BadRequest,
            Code::InvalidRequest | Code::QueueRefused => Self::InvalidArguments,
            code => match code.status() {
                405 => Self::MethodNotAllowed,
                415 => Self::UnsupportedMediaType,
                500 => Self::Internal,
                _ if code.retry() != Retry::Never => Self::Overloaded,
                _ => Self::BadRequest,
            },
        }
    }
}

#[derive(OpenApi)]
#[openapi(paths(serve))]
struct Description;

/// Submit an application of Kubeflow's Spark operator
///
/// Answers when the driver pod exists, after 75 seconds at most.
#[utoipa::path(
    post, path = "/api/v1/spark-submit", tag = "Kubeflow", operation_id = "submitApplication",
    request_body = Application,
    responses(
        (status = 200, description = "An earlier request had this id; its driver pod exists", body = Submitted),
        (status = 201, description = "The driver pod exists", body = Submitted),
        (status = 400, description = "`BAD_REQUEST` or `INVALID_SPARK_SUBMIT_ARGS`: the request is invalid, or the policy or Kubernetes refuses the driver", body = Refused),
        (status = 409, description = "`DRIVER_POD_ALREADY_EXISTS`: the pod of another client has the name", body = Refused),
        (status = 413, description = "`BAD_REQUEST`: the body is too large", body = Refused),
        (status = 415, description = "`UNSUPPORTED_MEDIA_TYPE`: the body is not JSON", body = Refused),
        (status = 422, description = "`INVALID_POD_TEMPLATE`: a template is not a pod", body = Refused),
        (status = 500, description = "`INTERNAL_SERVER_ERROR`: internal error of the gateway", body = Refused),
        (status = 503, description = "`SUBMITTER_OVERLOADED`: the database or the cluster can't be reached, a limit is reached, the queue has no room now, or the pod takes longer; try again with the same id", body = Refused),
    )
)]
async fn serve(State(state): State<AppState>, request: Request) -> Response {
    if request.method() != Method::POST {
        let mut response = error("", ErrorCode::MethodNotAllowed, None, "Send POST with the application to submit.");
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    let mut id = String::new();
    match answer(&state, request, &mut id).await {
        Ok(response) => response,
        Err(Refusal::Problem(problem)) => {
            problem.log();
            let status = (problem.code.status() < 500).then_some(problem.code.status());
            error(&id, ErrorCode::of(&problem), status, &new::in_words_of_operator(&problem))
        }
        Err(Refusal::Error(code, message)) => error(&id, code, None, &message),
    }
}

/// The API of Kubeflow's operator, whose errors have an `error_code`.
#[derive(Debug)]
pub(super) struct Kubeflow;

impl Face for Kubeflow {
    fn answer(&self, problem: &Problem, _: &str, _: &RequestId) -> Response {
        let status = (problem.code.status() < 500).then_some(problem.code.status());
        error("", ErrorCode::of(problem), status, &problem.detail)
    }
}

/// Returns the route.
pub(super) fn routes() -> Routes {
    // Other methods get errors of this API, too.
    Routes::described_by(Description::openapi()).route(PATH, any(serve)).changes(Method::POST, "submit", About::nothing)
}

/// Why there is no driver pod.
enum Refusal {
    Problem(Problem),
    Error(ErrorCode, String),
}

impl<E: Into<Problem>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Problem(error.into())
    }
}

async fn answer(state: &AppState, request: Request, id: &mut String) -> Result<Response, Refusal> {
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        let message = format!("Content-Type is {:?}: send application/json.", content_type.unwrap_or_default());
        return Err(Refusal::Error(ErrorCode::UnsupportedMediaType, message));
    }
    let caller = request.extensions().get::<Session>().cloned();
    let caller = caller.ok_or_else(|| Problem::internal("the request passed no authentication".to_owned()))?;
    let (bytes, held) = state.bodies.read(request.into_body()).await?;
    let NewApplication { submission_id, request, options } = new::parse(&bytes, id)?;
    let submit = state.service.submissions.submit(&caller, request, options, held);
    let accepted = answered_within(state.settings.request_timeout, submit).await?;
    let (found, is_duplicate) = match accepted {
        Ok(accepted) => (accepted.submission.id, accepted.replayed),
        Err(Error::ClientIdTaken { by, .. }) => (by, true),
        // A repeated request needs no room for another submission.
        Err(error @ (Error::Full { .. } | Error::BacklogFull { .. } | Error::WouldWait { .. })) => {
            let filter = Filter { client_id: Some(submission_id.clone()), ..Filter::default() };
            let earlier = state.service.submissions.submissions(&caller, &filter, None, 1).await?;
            (earlier.items.into_iter().next().ok_or(error)?.id, true)
        }
        Err(error) => return Err(error.into()),
    };
    let submission = with_pod(state, &caller, &found).await?;
    if is_duplicate {
        caller.changes_nothing();
    }
    let status = if is_duplicate { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(document(submission_id, submission, is_duplicate))).into_response())
}

/// Returns the submission once its driver pod exists.
async fn with_pod(state: &AppState, caller: &Session, id: &SubmissionId) -> Result<Submission, Refusal> {
    let (service, most) = (&state.service, state.settings.max_subscribers);
    // When it is PENDING, all objects exist.
    let waited = service.events.wait(caller, id, Target::Reached(SubmissionState::Pending), PATIENCE, most).await;
    let waited = waited.map_err(Problem::from)?;
    let submission = service.submissions.submission(caller, id).await?.filter(|_| waited != Waited::Unknown);
    let Some(submission) = submission else {
        let message = "The submission with this submission_id isn't yours to see.".to_owned();
        return Err(Refusal::Error(ErrorCode::BadRequest, message));
    };
    let why = || FailureReason::of(&submission).map(|why| why.message).unwrap_or_default();
    match submission.state {
        SubmissionState::Error if submission.reason.as_deref() == Some("AlreadyExists") => {
            Err(Refusal::Error(ErrorCode::PodExists, format!("{}.", why())))
        }
        // It was accepted while its queue had room, which another submission took.
        SubmissionState::Killed if is_unadmitted(&submission) => {
            Err(Refusal::Error(ErrorCode::Overloaded, format!("{id} was {}.", why())))
        }
        state if state == SubmissionState::Error || (state.is_terminal() && submission.pod_uid.is_none()) => {
            Err(Refusal::Error(ErrorCode::BadRequest, format!("{id} has no driver pod and is {state}: {}.", why())))
        }
        _ if submission.pod_uid.is_some() => Ok(submission),
        state => {
            let message =
                format!("{id} is accepted and still {state}: {}. Ask again with the same submission_id.", why());
            Err(Refusal::Error(ErrorCode::Overloaded, message))
        }
    }
}

/// Returns whether a submission has ended because its queue didn't admit it in time.
fn is_unadmitted(submission: &Submission) -> bool {
    let has_timed_out = submission.reason.as_deref() == Some(KillCause::START_TIMEOUT);
    has_timed_out && submission.queue.is_some() && submission.admitted_at.is_none()
}

fn document(submission_id: String, submission: Submission, is_duplicate: bool) -> Submitted {
    let message = match is_duplicate {
        true => format!("Driver was already submitted as {}", submission.id),
        false => format!("Driver successfully submitted as {}", submission.id),
    };
    Submitted {
        submission_id,
        app_name: submission.name,
        message,
        submitted_at: submission.created_at.to_rfc3339_opts(SecondsFormat::Secs, true),
        spark_app_id: submission.names.app_id,
        driver_pod_name: submission.names.driver_pod,
        driver_pod_uid: submission.pod_uid,
        namespace: submission.namespace,
        duplicate_submission: is_duplicate,
    }
}

/// Returns an error. Its status is that of the code, unless another one says more.
fn error(submission_id: &str, code: ErrorCode, status: Option<u16>, message: &str) -> Response {
    let (name, usual) = code.row();
    // The operator takes an error without a message for a broken connection.
    let message = if message.is_empty() { name } else { message };
    let status = match code {
        ErrorCode::BadRequest => status.filter(|status| matches!(status, 401 | 403 | 413)).unwrap_or(usual),
        _ => usual,
    };
    let timestamp = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    let (submission_id, message) = (submission_id.to_owned(), message.to_owned());
    let body = Refused { submission_id, status, error_code: name, message, timestamp };
    (StatusCode::from_u16(status).unwrap_or_default(), Json(body)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_tries_again_exactly_after_what_may_pass() {
        for &code in Code::ALL {
            let mapped = ErrorCode::of(&Problem::new(code, ""));
            let tries_again = matches!(mapped, ErrorCode::Internal | ErrorCode::Overloaded);
            let may_pass = code.status() >= 500 || matches!(code, Code::TooManyRequests | Code::RateLimited);
            assert_eq!(tries_again, may_pass, "{}", code.as_str());
        }
    }
}
