//! Gives every request an id and one line in the log.

use std::time::Instant;

use axum::{
    Extension, Router,
    extract::Request,
    http::{HeaderName, Method, header},
    middleware::{Next, from_fn, map_request},
    response::Response,
};
use tower::ServiceBuilder;
pub use tower_http::request_id::RequestId;
use tower_http::{
    request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer},
    sensitive_headers::SetSensitiveRequestHeadersLayer,
};
use tracing::{Instrument, field::display};

use super::routes::Route;
use sparkgate_metrics::{Value, metrics};
use sparkgate_server::Peer;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id of a caller.
const MAX_LENGTH: usize = 128;
/// Headers whose values no log shows.
const SENSITIVE: [HeaderName; 3] = [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE];

/// Puts the log around all routes. A request's id is the caller's `x-request-id` if it is short and of harmless characters,
/// otherwise a new UUID.
pub fn logged(router: Router) -> Router {
    let layers = ServiceBuilder::new()
        .layer(SetSensitiveRequestHeadersLayer::new(SENSITIVE))
        .layer(map_request(drop_unfit))
        .layer(SetRequestIdLayer::new(HEADER, MakeRequestUuid))
        .layer(PropagateRequestIdLayer::new(HEADER))
        .layer(from_fn(log));
    router.layer(layers)
}

/// Returns the text of an id.
pub fn text(id: &RequestId) -> &str {
    id.header_value().to_str().unwrap_or_default()
}

/// Removes a caller's id that can't be used.
async fn drop_unfit(mut request: Request) -> Request {
    let id = request.headers().get(HEADER).and_then(|value| value.to_str().ok());
    let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    if !id.is_some_and(|id| (1..=MAX_LENGTH).contains(&id.len()) && id.bytes().all(is_harmless)) {
        request.headers_mut().remove(HEADER);
    }
    request
}

/// Logs method, path (never the query), status and duration of the response, and counts it. `peer` is the address of the connection's other
/// end, and `client` that of the client behind it, if the peer is a trusted proxy.
async fn log(Extension(id): Extension<RequestId>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let (method, path, route) = (request.method().clone(), request.uri().path().to_owned(), Route::of(&request));
    let id = text(&id);
    let peer: Option<&Peer> = request.extensions().get();
    let client = peer.and_then(|peer| peer.forwarded).map(display);
    let peer = peer.map(|peer| display(peer.address.ip()));
    let span = tracing::info_span!("request", id);
    let response = next.run(request).instrument(span).await;
    let status = response.status().as_u16();
    let seconds = started.elapsed().as_secs_f64();
    let (label, verb, path) = (route.label(), Value::from(verb(&method)), route.loggable(&path));
    metrics().http_seconds.with([label.clone(), verb.clone()]).observe(seconds);
    metrics().http_requests.with([label, verb, status.into()]).inc();
    let duration_ms = (seconds * 10_000.0).round() / 10.0;
    if route.is_probe {
        tracing::debug!(id, peer, client, %method, path = &*path, status, duration_ms, "request");
    } else {
        tracing::info!(id, peer, client, %method, path = &*path, status, duration_ms, "request");
    }
    response
}

/// Returns a method as a label value: a client may invent methods.
fn verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use axum::{body::Body, routing::any};
    use tower::ServiceExt;
    use tracing::Level;

    use super::*;
    use crate::routes::Routes;

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn request_is_one_log_line_and_a_probe_is_none() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_max_level(Level::INFO);
        let _guard = tracing::subscriber::set_default(subscriber.with_writer(move || writer.clone()).finish());
        let probes = Routes::default().route("/livez", any(async || "")).probe();
        let router = probes.map(|router| router.fallback(async || "")).within(logged);
        for path in ["/v1/submissions?token=secret", "/livez"] {
            let mut request = Request::post(path).header(HEADER, "r-1").body(Body::empty()).unwrap();
            let address = "192.0.2.1:4711".parse().unwrap();
            let forwarded = Some("198.51.100.7".parse().unwrap());
            request.extensions_mut().insert(Peer { address, forwarded, certificate: None, is_secure: false });
            router.clone().oneshot(request).await.unwrap();
        }
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.lines().count(), 1, "{log}");
        for part in [
            "r-1",
            "peer=192.0.2.1 ",
            "client=198.51.100.7 ",
            "method=POST",
            "path=\"/v1/submissions\"",
            "status=200",
            "duration_ms=",
        ] {
            assert!(log.contains(part), "{part}: {log}");
        }
        assert!(!log.contains("secret"), "{log}");
    }
}
