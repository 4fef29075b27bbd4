//! Builds responses: status, headers and Spark's JSON.

use axum::{
    body::Body,
    extract::Request,
    http::{HeaderValue, Response, StatusCode, header},
};
use hyper::ext::ReasonPhrase;
use serde::Serialize;

use sparkgate_spark::{
    SparkVersion,
    rest::{BadPath, ErrorResponse, PROTOCOL_VERSION, UNKNOWN_PROTOCOL_VERSION, bad_message, error_page, to_json},
};

const JSON: HeaderValue = HeaderValue::from_static("application/json;charset=utf-8");
const HTML: HeaderValue = HeaderValue::from_static("text/html;charset=iso-8859-1");
const NOT_CACHED: HeaderValue = HeaderValue::from_static("must-revalidate,no-cache,no-store");

pub(super) fn success(reply: &impl Serialize) -> serde_json::Result<Response<Body>> {
    to_json(reply).map(|json| with(StatusCode::OK, JSON, json))
}

/// Returns an `ErrorResponse`.
pub(crate) fn error(status: StatusCode, message: String, version: SparkVersion) -> Response<Body> {
    error_response(status, message, version, None)
}

/// Returns the `ErrorResponse` to a path of another protocol version.
pub(super) fn unknown_version(message: String, version: SparkVersion) -> Response<Body> {
    let mut response = error_response(unknown_protocol_version(), message, version, Some(PROTOCOL_VERSION));
    // 468 has no reason phrase: Jetty repeats the number.
    response.extensions_mut().insert(ReasonPhrase::from_static(b"468"));
    response
}

fn error_response(
    status: StatusCode,
    message: String,
    version: SparkVersion,
    highest_protocol_version: Option<&'static str>,
) -> Response<Body> {
    let server_spark_version = version.to_string();
    let reply = ErrorResponse { action: "ErrorResponse", highest_protocol_version, message, server_spark_version };
    // Serializing a flat struct of strings can't fail.
    with(status, JSON, to_json(&reply).unwrap_or_default())
}

/// Returns Jetty's HTML error page.
pub(super) fn page(
    status: StatusCode,
    message: &str,
    request: &Request,
    allow: Option<&'static str>,
) -> Response<Body> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let uri = format!("http://{host}{target}");
    let mut response = with(status, HTML, error_page(status.as_u16(), message, &uri));
    response.headers_mut().insert(header::CACHE_CONTROL, NOT_CACHED);
    insert_allow(&mut response, allow);
    response
}

pub(super) fn bad_path(bad: BadPath, request: &Request, version: SparkVersion) -> Response<Body> {
    let status = StatusCode::BAD_REQUEST;
    match bad {
        _ if version < SparkVersion::V4_2 => with(status, HTML, bad_message(&bad.to_string())),
        BadPath::Ambiguous(_) => page(status, "Bad Request", request, None),
        BadPath::Malformed => {
            let mut response = with(status, HTML, error_page(status.as_u16(), "Bad Request", "/badMessage"));
            response.headers_mut().insert(header::CACHE_CONTROL, NOT_CACHED);
            response
        }
    }
}

/// Returns a response without a body. `refused_by` is set for responses that are errors in Jetty: since version 12 Jetty
/// forbids caching them.
pub(super) fn empty(
    status: StatusCode,
    allow: Option<&'static str>,
    refused_by: Option<SparkVersion>,
) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    if refused_by.is_some_and(|version| version >= SparkVersion::V4_2) {
        response.headers_mut().insert(header::CACHE_CONTROL, NOT_CACHED);
    }
    insert_allow(&mut response, allow);
    response
}

fn insert_allow(response: &mut Response<Body>, allow: Option<&'static str>) {
    if let Some(allow) = allow {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    }
}

fn with(status: StatusCode, content_type: HeaderValue, content: String) -> Response<Body> {
    let mut response = Response::new(Body::from(content));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// Returns 468, a status code of Spark's own.
fn unknown_protocol_version() -> StatusCode {
    StatusCode::from_u16(UNKNOWN_PROTOCOL_VERSION).unwrap_or(StatusCode::BAD_REQUEST)
}
