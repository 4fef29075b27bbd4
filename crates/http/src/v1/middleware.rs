//! What every response of the resource API has in common: problems and unchanged documents.

use std::sync::Arc;

use axum::{
    Extension,
    body::Body,
    extract::{OriginalUri, Request},
    http::{HeaderValue, StatusCode, header},
    middleware::Next,
    response::Response,
};

use sparkgate_web::{
    nowhere::nothing_at,
    problem::{Problem, ProblemBody, reason::Reason},
    request_log::{RequestId, text},
};

const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

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
    problem.log();
    let body = ProblemBody {
        r#type: format!("https://sparkgate.dev/problems/{}", problem.code.as_str()),
        title: problem.code.title(),
        status: status.as_u16(),
        detail: problem.detail.clone(),
        instance,
        code: problem.code.as_str(),
        request_id: text(id).to_owned(),
        errors: problem.errors.clone(),
        members: problem.members.clone(),
    };
    // Serializing strings, numbers and JSON values can't fail.
    let json = serde_json::to_vec(&body).unwrap_or_default();
    *response.body_mut() = Body::from(json);
    response.extensions_mut().insert(Reason::of(problem));
    response.headers_mut().insert(header::CONTENT_TYPE, PROBLEM_JSON);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
}

/// Answers a path that is no resource.
pub(super) async fn no_such_path(OriginalUri(uri): OriginalUri) -> Problem {
    nothing_at(uri.path(), "See /v1/openapi.json for all paths.")
}

/// Returns whether the entity tag matches `If-None-Match` (RFC 9110): a list of entity tags, or `*`.
fn is_unchanged(wanted: Option<&HeaderValue>, etag: Option<&HeaderValue>) -> bool {
    let (Some(Ok(wanted)), Some(Ok(etag))) = (wanted.map(HeaderValue::to_str), etag.map(HeaderValue::to_str)) else {
        return false;
    };
    wanted.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}

/// Returns the document of a problem.
pub(crate) fn answer(problem: &Problem, path: &str, id: &RequestId) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(problem.code.status()).unwrap_or_default();
    if let Some(seconds) = problem.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    written(response, problem, path.to_owned(), id)
}
