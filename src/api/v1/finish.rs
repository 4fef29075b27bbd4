//! The last step of every response of the resource API: writes problems, and turns unchanged documents into 304.

use std::{sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::problem::{Code, Problem, ProblemBody};
use crate::api::request_log::RequestId;

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Answers a request that takes too long with a problem. Work that it began in a task of its own goes on.
pub(super) async fn in_time(State(limit): State<Duration>, request: Request, next: Next) -> Response {
    match tokio::time::timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let detail =
                format!("The request timed out after {limit:?}. The requested action may still be carried out.");
            Problem::new(Code::TimedOut, detail).into_response()
        }
    }
}

/// Writes the problem that the handler returned.
pub(super) async fn finish(Extension(id): Extension<RequestId>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let wanted = request.headers().get(header::IF_NONE_MATCH).cloned();
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions_mut().remove::<Arc<Problem>>() {
        return written(response, &problem, path, &id);
    }
    if response.status() == StatusCode::OK && is_unchanged(wanted.as_ref(), response.headers().get(header::ETAG)) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(header::CONTENT_TYPE);
        response.headers_mut().remove(header::CONTENT_LENGTH);
    }
    response
}

fn written(mut response: Response, problem: &Problem, instance: String, id: &RequestId) -> Response {
    let status = response.status();
    match (&problem.cause, status) {
        (Some(cause), StatusCode::INTERNAL_SERVER_ERROR) => tracing::error!(error = cause, "request failed"),
        (Some(cause), _) => tracing::warn!(error = cause, "request answered with 503"),
        (None, _) => tracing::debug!(code = problem.code.as_str(), "request refused"),
    }
    let body = ProblemBody {
        r#type: format!("https://sparkgate.dev/problems/{}", problem.code.as_str()),
        title: problem.code.title(),
        status: status.as_u16(),
        detail: problem.detail.clone(),
        instance,
        code: problem.code.as_str(),
        request_id: id.as_str().to_owned(),
        errors: problem.errors.clone(),
        members: problem.members.clone(),
    };
    // Serializing strings, numbers and JSON values can't fail.
    let json = serde_json::to_vec(&body).unwrap_or_default();
    *response.body_mut() = Body::from(json);
    response.headers_mut().insert(header::CONTENT_TYPE, PROBLEM_JSON);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
}

/// Returns whether the entity tag matches `If-None-Match` (RFC 9110): a list of entity tags, or `*`.
fn is_unchanged(wanted: Option<&HeaderValue>, etag: Option<&HeaderValue>) -> bool {
    let (Some(Ok(wanted)), Some(Ok(etag))) = (wanted.map(HeaderValue::to_str), etag.map(HeaderValue::to_str)) else {
        return false;
    };
    wanted.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}

/// The answer to a request that a browser may not send.
pub(in crate::api) fn forbidden(path: String, detail: String, id: &RequestId) -> Response {
    let response = Response::builder().status(StatusCode::FORBIDDEN).body(Body::empty());
    written(response.unwrap_or_default(), &Problem::new(Code::Forbidden, detail), path, id)
}

/// Returns the response to a request whose handler panicked.
pub(in crate::api) fn internal_error(path: String, id: &RequestId) -> Response {
    let response = Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR).body(Body::empty());
    written(response.unwrap_or_default(), &Problem::broken_off("a request handler panicked".to_owned()), path, id)
}
