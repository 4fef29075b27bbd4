//! Refuses requests of web pages, and those without the token. A client that creates a pod in the sandbox starts a process: a page
//! in the user's browser must not be able to do that, nor should other users of the machine.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use super::failure::Failure;

/// Refuses cross-origin requests of a browser (they have `Origin`), and host names that public DNS could resolve to this
/// machine.
pub(super) async fn refuse_browsers(request: Request, next: Next) -> Response {
    let headers = request.headers();
    if headers.contains_key(header::ORIGIN) && !same_origin(headers) {
        return Failure::forbidden("requests from web pages are not served").into_response();
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    if host.is_some_and(|host| !is_local(host)) {
        return Failure::forbidden("the Host of the request is not one of this machine").into_response();
    }
    next.run(request).await
}

/// Refuses requests without this bearer token.
pub(super) async fn require_token(State(token): State<Arc<str>>, request: Request, next: Next) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).map(header::HeaderValue::as_bytes);
    let is_right =
        |given: &[u8]| given.strip_prefix(b"Bearer ").is_some_and(|given| given.ct_eq(token.as_bytes()).into());
    if given.is_some_and(is_right) { next.run(request).await } else { Failure::unauthorized().into_response() }
}

/// Returns whether the origin is this server: some clients send its base address as `Origin` of a WebSocket.
fn same_origin(headers: &HeaderMap) -> bool {
    let value = |name| headers.get(name).and_then(|value: &header::HeaderValue| value.to_str().ok());
    match (value(header::ORIGIN), value(header::HOST)) {
        (Some(origin), Some(host)) => origin.strip_prefix("http://") == Some(host),
        _ => false,
    }
}

/// Returns whether a host is an address, a name without dots, or a name inside a cluster.
fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let inner = [".svc", ".local", ".localhost"].iter().any(|end| name.ends_with(end));
    !name.contains('.') || inner || name.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn only_local_hosts_are_accepted() {
        for host in ["127.0.0.1:8001", "localhost", "[::1]:80", "kubernetes.default.svc", "kubernetes", "10.0.0.1"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["evil.example", "evil.example:8001", "127.0.0.1.nip.io"] {
            assert!(!is_local(host), "{host}");
        }
    }
}
