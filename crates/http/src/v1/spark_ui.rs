//! The Spark UI of a submission.

use axum::{
    extract::{Extension, State},
    http::{HeaderMap, HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};

use crate::spark_ui::page::{self, ended};
use sparkgate_service::{Service, Session, Submission, UiPlace};
use sparkgate_submission::{State as SubmissionState, SubmissionId};
use sparkgate_web::{
    fetch_metadata::wants_page,
    id::{Id, find},
    problem::{Code, Problem, ProblemBody, responses::SubmissionProblems},
    query::{NoParameters, Query},
    request_log::{RequestId, text},
    session::Caller,
    state::AppState,
};

/// Open the Spark UI
///
/// Redirects to the UI of the driver, as long as the submission hasn't ended, and then to the operator's History Server, if the gateway
/// knows one. The URL of the driver's UI is a credential: it works without another one, for fifteen minutes, and then leads a browser
/// back to this one. Paths below this one, such as `/v1/submissions/{id}/ui/api/v1/applications`, redirect to the same path of the UI.
#[utoipa::path(
    get, path = "/v1/submissions/{id}/ui", tag = "Submissions", operation_id = "openSparkUi", params(Id),
    responses(
        SubmissionProblems,
        (status = 303, description = "The UI is at `Location`", headers(("Location" = String, description = "A relative URL of this gateway, or one of the operator's host for Spark UIs, or of the History Server"))),
        (status = 404, description = "There is no such submission, or it has no UI (any more). All problems are pages for clients that accept `text/html`", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn open(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    _: Query<NoParameters>,
    Extension(request_id): Extension<RequestId>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    or_page(opened(&state, &caller, &id, &uri, &headers).await, &uri, &headers, &request_id)
}

/// Does the same for a path below it, whose query is the driver's.
pub(super) async fn below(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    Extension(request_id): Extension<RequestId>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    or_page(opened(&state, &caller, &id, &uri, &headers).await, &uri, &headers, &request_id)
}

/// Returns a problem as a page to clients that want one.
fn or_page(
    answer: Result<Response, Problem>,
    uri: &Uri,
    headers: &HeaderMap,
    request_id: &RequestId,
) -> Result<Response, Problem> {
    answer.or_else(|problem| match wants_page(headers) {
        true => {
            problem.log();
            Ok(page::problem(&page::Shown {
                status: problem.code.status(),
                title: problem.code.title(),
                detail: &problem.detail,
                request_id: text(request_id),
                retry_after: problem.retry_after,
                console: Some(&format!("{}console/submissions", "../".repeat(uri.path().matches('/').count() - 1))),
            }))
        }
        false => Err(problem),
    })
}

async fn opened(
    state: &AppState,
    caller: &Session,
    id: &SubmissionId,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    let submission = find(&state.service, caller, id).await?;
    let ui = &state.service.spark_ui;
    let location = match ui.place(&submission) {
        UiPlace::Driver => {
            let ticket = ui.ticket(caller, &submission)?;
            let path = uri.path();
            let below = path.splitn(6, '/').nth(5).unwrap_or_default();
            // Relative, so that it works behind a proxy that removes a prefix.
            let up = "../".repeat(path.matches('/').count() - 2);
            let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
            let start = ui.origin().map_or(up, |origin| format!("{}/v1/", origin.of(id)));
            format!("{start}ui/{id}/{ticket}/{below}{query}")
        }
        UiPlace::History(url) => url,
        UiPlace::Nowhere if !submission.state.is_terminal() => return Err(no_ui("This gateway serves no Spark UIs.")),
        UiPlace::Nowhere if wants_page(headers) => return Ok(ended(id)),
        UiPlace::Nowhere => return Err(no_ui("The submission has ended, and its driver with it.")),
    };
    let location = HeaderValue::from_str(&location).map_err(|error| Problem::internal(error.to_string()))?;
    let headers = [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    Ok((StatusCode::SEE_OTHER, headers).into_response())
}

/// Returns where the UI of a submission is, if there is one now: a path of this gateway, or a URL of the History Server.
pub(crate) fn link(service: &Service, submission: &Submission) -> Option<String> {
    match service.spark_ui.place(submission) {
        UiPlace::Driver if matches!(submission.state, SubmissionState::Running | SubmissionState::Killing) => {
            Some(format!("/v1/submissions/{}/ui/", submission.id))
        }
        UiPlace::History(url) if submission.started_at.is_some() => Some(url),
        UiPlace::Driver | UiPlace::History(_) | UiPlace::Nowhere => None,
    }
}

pub(crate) fn no_ui(detail: &str) -> Problem {
    Problem::new(Code::SparkUiNotFound, detail)
}
