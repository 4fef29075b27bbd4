//! Answers to people who look around: the page at `/`, and the way from paths that are nearly right.
//!
//! Spark's master answers all of these paths with an error, and its clients use none of them. A request without `Accept` gets
//! that error here, too.

use axum::{
    extract::Request,
    http::{Method, StatusCode, header, uri::Authority},
    response::{IntoResponse, Response},
};

use super::v1::middleware;
use sparkgate_server::Peer;
use sparkgate_web::{fetch_metadata::wants_page, nowhere::nothing_at, request_log::RequestId, suggest::closest};

const PAGE: &str = include_str!("home.html");
/// The page has a style sheet in itself, and nothing else.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Answers a request of a person; `None` for all others.
pub(super) fn answer(request: &Request, id: &RequestId) -> Option<Response> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) || !request.headers().contains_key(header::ACCEPT) {
        return None;
    }
    let path = request.uri().path();
    let elsewhere = match path {
        "/" => return wants_page(request.headers()).then(|| page(request)),
        "/healthz" | "/health" => "/livez",
        "/openapi.json" => "/v1/openapi.json",
        "/v1/submissions/" => "/v1/submissions",
        "/v1/events/" => "/v1/events",
        _ => return misspelt(path, id),
    };
    let moved = (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, elsewhere)], format!("See {elsewhere}\n"));
    Some(moved.into_response())
}

fn misspelt(path: &str, id: &RequestId) -> Option<Response> {
    let word = path.strip_prefix("/v1/")?.split('/').next()?;
    let meant = closest(word, &["submissions", "events"]).filter(|meant| *meant != word)?;
    Some(middleware::answer(&nothing_at(path, &format!("Did you mean /v1/{meant}?")), path, id))
}

fn page(request: &Request) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::VARY, "accept"),
    ];
    (headers, PAGE.replace("{version}", env!("CARGO_PKG_VERSION")).replace("{origin}", &origin(request)))
        .into_response()
}

/// Returns the gateway's address as the browser named it, or a variable to set.
fn origin(request: &Request) -> String {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.or_else(|| request.uri().authority().map(Authority::as_str));
    // The only characters of a host, so that it is plain text in HTML and in a shell.
    let is_host = |host: &&str| {
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
    };
    // A proxy that ends TLS says so; nothing but this text depends on it.
    let by_proxy = request.headers().get("x-forwarded-proto").is_some_and(|scheme| scheme == "https");
    let is_secure = by_proxy || request.extensions().get::<Peer>().is_some_and(|peer| peer.is_secure);
    let scheme = if is_secure { "https" } else { "http" };
    host.filter(is_host).map_or_else(|| "$SPARKGATE_URL".to_owned(), |host| format!("{scheme}://{host}"))
}
