//! What every response of the resource API has in common: problems, unchanged documents, compression, HEAD.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Extension,
    body::{Body, HttpBody},
    extract::{Request, State},
    http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, Uri, Version, header},
    middleware::Next,
    response::Response,
};
use futures::stream;
use tower::ServiceExt;
use tower_http::{
    CompressionLevel,
    compression::{
        Compression,
        predicate::{Predicate, SizeAbove},
    },
};

use super::problem::{Code, Problem, ProblemBody, Reason};
use crate::api::{
    request_log::{RequestId, text},
    server_span::spawn,
};

/// The smallest document that is compressed, in bytes.
const COMPRESSED: u64 = 1024;
const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// Answers a request that takes too long with a problem. Work that it began in a task of its own goes on.
pub(in crate::api) async fn in_time(
    State(limit): State<Duration>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    answered_within(limit, next.run(request)).await
}

pub(in crate::api) async fn answered_within<T>(limit: Duration, answer: impl Future<Output = T>) -> Result<T, Problem> {
    tokio::time::timeout(limit, answer).await.map_err(|_| {
        let detail = format!("The request timed out after {limit:?}. The requested action may still be carried out.");
        Problem::new(Code::TimedOut, detail)
    })
}

/// Runs a use case in its own task, so that a client that disconnects can't leave it half done.
pub(in crate::api) async fn to_its_end<T, E>(
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Problem>
where
    T: Send + 'static,
    E: Send + 'static,
    Problem: From<E>,
{
    Ok(spawn(work).await.map_err(|error| Problem::broken_off(error.to_string()))??)
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

/// Marks a response whose parts are sent as they arise. Compression would hold them back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Live;

/// Compresses large responses for clients that ask for it. Responses to other clients pass as they are.
pub(in crate::api) async fn compress(request: Request, next: Next) -> Response {
    let is_head = request.method() == Method::HEAD;
    match takes_gzip(request.headers()) {
        false => next.run(request).await,
        // The length of the compressed document isn't known.
        true if is_head => without_length(next.run(request).await),
        true => {
            let is_whole =
                |_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions| extensions.get::<Live>().is_none();
            let compression = Compression::new(next).quality(CompressionLevel::Fastest);
            let compression = compression.compress_when(SizeAbove::new(COMPRESSED).and(is_whole));
            let Ok(response) = compression.oneshot(request).await;
            with_weak_tag(response.map(Body::new))
        }
    }
}

/// Keeps the length of a response to a HEAD request unknown, if it is. The router that encloses this one would take the length of
/// the empty body for that of the document.
pub(in crate::api) fn without_length_of_nothing(mut response: Response) -> Response {
    let is_empty = response.body().size_hint().exact() == Some(0);
    if is_empty && !response.headers().contains_key(header::CONTENT_LENGTH) {
        *response.body_mut() = of_unknown_length();
    }
    response
}

fn of_unknown_length() -> Body {
    Body::from_stream(stream::empty::<Result<&str, Infallible>>())
}

/// Returns whether a client takes responses that are compressed with gzip.
pub(in crate::api) fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|encoding| encoding.trim_start().starts_with("gzip"))
}

fn without_length(mut response: Response) -> Response {
    let of_header =
        response.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let length = of_header.or_else(|| response.body().size_hint().exact());
    if length.is_some_and(|length: u64| length >= COMPRESSED) {
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = of_unknown_length();
    }
    response
}

/// Makes the entity tag of a compressed response weak: its bytes are others than those of the same document uncompressed.
fn with_weak_tag(mut response: Response) -> Response {
    if response.headers().contains_key(header::CONTENT_ENCODING)
        && let Some(tag) = response.headers().get(header::ETAG).and_then(|tag| tag.to_str().ok())
        && let Ok(weak) = HeaderValue::from_str(&format!("W/{tag}"))
    {
        response.headers_mut().insert(header::ETAG, weak);
    }
    response
}

/// Answers a path that is no resource.
pub(super) async fn no_such_path(uri: Uri) -> Problem {
    nothing_at(uri.path(), "See /v1/openapi.json for all paths.")
}

pub(in crate::api) fn nothing_at(path: &str, hint: &str) -> Problem {
    Problem::new(Code::NotFound, format!("There is nothing at {path}. {hint}"))
}

/// Answers a method that a resource doesn't have. The router adds `Allow`.
pub(in crate::api) async fn no_such_method(request: Request) -> Problem {
    let detail = format!("{} does not allow {}: see the Allow header.", request.uri().path(), request.method());
    Problem::new(Code::MethodNotAllowed, detail)
}

/// Returns whether the entity tag matches `If-None-Match` (RFC 9110): a list of entity tags, or `*`.
fn is_unchanged(wanted: Option<&HeaderValue>, etag: Option<&HeaderValue>) -> bool {
    let (Some(Ok(wanted)), Some(Ok(etag))) = (wanted.map(HeaderValue::to_str), etag.map(HeaderValue::to_str)) else {
        return false;
    };
    wanted.split(',').map(str::trim).any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
}

/// Returns the answer to a request without a known caller.
pub(in crate::api) fn refused(code: Code, path: String, detail: String, id: &RequestId) -> Response {
    let retry = code.retry_after();
    let mut response = of_problem(Problem::new(code, detail), path, id);
    if let Some(seconds) = retry {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

/// Returns the answer to a path that is nearly one of this API.
pub(in crate::api) fn not_found(path: String, hint: &str, id: &RequestId) -> Response {
    of_problem(nothing_at(&path, hint), path, id)
}

/// Returns the response to a request whose handler panicked.
pub(in crate::api) fn internal_error(path: String, id: &RequestId) -> Response {
    of_problem(Problem::broken_off("a request handler panicked".to_owned()), path, id)
}

fn of_problem(problem: Problem, path: String, id: &RequestId) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(problem.code.status()).unwrap_or_default();
    written(response, &problem, path, id)
}
