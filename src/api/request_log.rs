//! Gives every request an id and one line in the log.

use std::time::Instant;

use axum::{extract::Request, http::HeaderValue, middleware::Next, response::Response};
use tracing::Instrument;
use uuid::Uuid;

const HEADER: &str = "x-request-id";

/// The request's id: the caller's `x-request-id` if it is short and of harmless characters, otherwise a new UUID.
#[derive(Debug, Clone)]
pub(super) struct RequestId(String);

impl RequestId {
    const MAX_LENGTH: usize = 128;

    fn of(request: &Request) -> Self {
        let given = request.headers().get(HEADER).and_then(|value| value.to_str().ok());
        let is_fit = |id: &&str| {
            !id.is_empty()
                && id.len() <= Self::MAX_LENGTH
                && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b))
        };
        Self(given.filter(is_fit).map_or_else(|| Uuid::new_v4().to_string(), str::to_owned))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Gives the request its id. Logs method, path (never the query), status and duration of the response.
pub(super) async fn request_log(mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let id = RequestId::of(&request);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    request.extensions_mut().insert(id.clone());

    let span = tracing::info_span!("request", id = id.as_str());
    let mut response = next.run(request).instrument(span).await;

    let status = response.status().as_u16();
    let duration_ms = (started.elapsed().as_secs_f64() * 10_000.0).round() / 10.0;
    let id = id.as_str();
    if matches!(path.as_str(), "/livez" | "/readyz") {
        tracing::debug!(id, %method, path, status, duration_ms, "request");
    } else {
        tracing::info!(id, %method, path, status, duration_ms, "request");
    }
    if let Ok(value) = HeaderValue::from_str(id) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use axum::{Router, body::Body, middleware::from_fn};
    use tower::ServiceExt;
    use tracing::Level;

    use super::*;

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
        let router: Router = Router::new().fallback(async || "").layer(from_fn(request_log));
        for path in ["/v1/submissions?token=secret", "/livez", "/readyz"] {
            let request = Request::post(path).header(HEADER, "r-1").body(Body::empty()).unwrap();
            router.clone().oneshot(request).await.unwrap();
        }
        let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.lines().count(), 1, "{log}");
        for part in ["r-1", "method=POST", "path=\"/v1/submissions\"", "status=200", "duration_ms="] {
            assert!(log.contains(part), "{part}: {log}");
        }
        assert!(!log.contains("secret"), "{log}");
    }
}
