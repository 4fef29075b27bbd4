//! Spark's REST protocol: dispatches requests to handlers, and answers methods without a handler as Jetty does.

use axum::{
    body::{Body, HttpBody},
    extract::{Extension, Request, State},
    http::{Method, StatusCode, header},
    response::Response,
    routing::any,
};
use utoipa::OpenApi;

use sparkgate_service::Session;
use sparkgate_spark::{
    Refusal, SparkVersion,
    rest::{Action, Target, parse_path},
};
use sparkgate_web::{
    change::{About, Change},
    face::Face,
    idempotency_key,
    problem::Problem,
    request_log::RequestId,
    routes::{Route, Routes},
    state::AppState,
};

pub(super) mod actions;
pub(super) mod create;
mod fault;
mod reply;

use fault::Fault;
use reply::error;

/// Spark's protocol, whose errors are an `ErrorResponse` of a release.
#[derive(Debug)]
pub(super) struct SparkFace(pub(super) SparkVersion);

impl Face for SparkFace {
    fn answer(&self, problem: &Problem, _: &str, _: &RequestId) -> Response {
        let status = StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        error(status, problem.detail.clone(), self.0)
    }

    fn change(&self, _: &Route, method: &Method, path: &str) -> Option<Change> {
        let Target::Action { action, id } = parse_path(path, self.0).ok()? else { return None };
        let (action, about) = match action {
            Action::Create => ("submit", About::Nothing),
            Action::Kill => ("kill", id.map_or(About::Nothing, About::Submission)),
            Action::KillAll => ("killall", About::Nothing),
            Action::Clear => ("clear", About::Nothing),
            Action::Status | Action::Readyz => return None,
        };
        (method == Method::POST).then_some(Change { action, about })
    }
}

#[derive(OpenApi)]
#[openapi(paths(create::create, actions::status, actions::kill, actions::kill_all, actions::clear, actions::readyz,))]
struct Protocol;

/// Returns the paths of the protocol. It answers every other path, too.
pub(super) fn routes() -> Routes {
    let document = Protocol::openapi();
    let routes = Routes::described_by(document.clone());
    document.paths.paths.keys().fold(routes, |routes, path| routes.route(path, any(serve)))
}

/// Answers any request.
pub(super) async fn serve(
    State(state): State<AppState>,
    Extension(request_id): Extension<RequestId>,
    request: Request,
) -> Response {
    answer(&state, &request_id, request).await
}

async fn answer(state: &AppState, request_id: &RequestId, request: Request) -> Response {
    let version = state.service.submissions.spark_version();
    let is_head = request.method() == Method::HEAD;
    let response = match parse_path(request.uri().path(), version) {
        Ok(Target::Action { action, id }) if is_for(action, request.method()) => {
            perform(state, action, id, request).await.unwrap_or_else(|fault| fault.into_response(version, request_id))
        }
        Ok(Target::Action { action, .. }) => other_method(action, &request, state),
        Ok(Target::Nowhere { message, unknown_version: true }) => reply::unknown_version(message, version),
        Ok(Target::Nowhere { message, .. }) => error(StatusCode::BAD_REQUEST, message, version),
        Err(bad) => reply::bad_path(bad, &request, version),
    };
    if is_head { without_body(response) } else { response }
}

fn is_for(action: Action, method: &Method) -> bool {
    match *method {
        Method::GET | Method::HEAD => action.is_read(),
        Method::POST => !action.is_read(),
        _ => false,
    }
}

async fn perform(state: &AppState, action: Action, id: Option<String>, request: Request) -> Result<Response, Fault> {
    let service = &state.service;
    let caller = request.extensions().get::<Session>().cloned().ok_or(Fault::Unauthenticated)?;
    let (body, held, key) = match action {
        Action::Create => {
            let key = idempotency_key::read(request.headers());
            let (body, held) = state.bodies.read(request.into_body()).await?;
            (body, Some(held), key.map_err(|reason| Refusal::field("Idempotency-Key", reason))?)
        }
        // No other action reads a body or a key, so a body of any size is ignored.
        _ => Default::default(),
    };
    let answer = async {
        Ok(match action {
            Action::Create => reply::success(&create::create(service, caller, &body, key, held).await?)?,
            Action::Kill => reply::success(&actions::kill(service, caller, id).await?)?,
            Action::KillAll => reply::success(&actions::kill_all(service, caller).await?)?,
            Action::Status => reply::success(&actions::status(service, &caller, id).await?)?,
            Action::Clear => reply::success(&actions::clear(service, caller).await?)?,
            Action::Readyz => reply::success(&actions::readyz(service).await?)?,
        })
    };
    tokio::time::timeout(state.settings.request_timeout, answer).await.map_err(|_| Fault::Slow)?
}

/// Answers as `HttpServlet` does for a method that the servlet doesn't override. TRACE is not offered, because it would
/// echo the request with its headers.
fn other_method(action: Action, request: &Request, state: &AppState) -> Response {
    let version = state.service.submissions.spark_version();
    let allow = if action.is_read() { "GET, HEAD, OPTIONS" } else { "POST, OPTIONS" };
    match *request.method() {
        Method::OPTIONS => reply::empty(StatusCode::OK, Some(allow), None),
        Method::GET | Method::HEAD | Method::POST => {
            // A HEAD gets the refusal of the corresponding GET.
            let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
            let message = format!("HTTP method {method} is not supported by this URL");
            reply::page(StatusCode::METHOD_NOT_ALLOWED, &message, request, Some(allow))
        }
        Method::PUT | Method::DELETE | Method::TRACE => {
            reply::empty(StatusCode::METHOD_NOT_ALLOWED, Some(allow), Some(version))
        }
        _ => reply::empty(StatusCode::NOT_IMPLEMENTED, None, Some(version)),
    }
}

/// Removes the body for a HEAD. `Content-Length` is that of the response to the same GET.
fn without_body(mut response: Response) -> Response {
    let length = response.body().size_hint().exact();
    *response.body_mut() = Body::empty();
    if let Some(length) = length {
        response.headers_mut().insert(header::CONTENT_LENGTH, length.into());
    }
    response
}
