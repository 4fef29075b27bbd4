//! Answers requests from process start until the router is ready. A process that waits for its database is alive:
//! restarting it would not help.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tower::ServiceExt;

use super::{health, request_log, spark};
use crate::spark::SparkVersion;

const WAITING: &str =
    "Sparkgate is starting and waits for its database. Try again in a moment; see its log for details.";

/// Stands in for the router until it is ready. Until then `/livez` answers 200 and every other path 503. Cheap to clone.
#[derive(Debug, Clone)]
pub struct StartupRouter {
    starting: Router,
    ready: Arc<OnceLock<Router>>,
}

impl StartupRouter {
    /// Creates a router that is not ready. Its errors name this Spark release.
    pub fn new(version: SparkVersion) -> Self {
        let starting = Router::new()
            .route("/livez", get(health::livez))
            .route("/readyz", get(|| async { asks_for_patience((StatusCode::SERVICE_UNAVAILABLE, WAITING)) }))
            .fallback(async move || {
                asks_for_patience(spark::error(StatusCode::SERVICE_UNAVAILABLE, WAITING.to_owned(), version))
            });
        Self { starting: request_log::logged(starting), ready: Arc::default() }
    }

    /// Sends every request to `router` from now on, also on connections that are already open.
    pub fn open(&self, router: Router) {
        // The router is set once, so the result needs no check.
        let _ = self.ready.set(router);
    }

    /// Returns the router to serve.
    pub fn router(&self) -> Router {
        Router::new().fallback(enter).with_state(self.clone())
    }
}

async fn enter(State(startup): State<StartupRouter>, request: Request) -> Response {
    let router = startup.ready.get().unwrap_or(&startup.starting).clone();
    let answer: Result<Response, Infallible> = router.oneshot(request).await;
    let Ok(response) = answer;
    response
}

fn asks_for_patience(response: impl IntoResponse) -> Response {
    let mut response = response.into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    async fn status(startup: &StartupRouter, path: &str) -> u16 {
        let request = Request::get(path).body(Body::empty()).unwrap();
        startup.router().oneshot(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn process_is_alive_before_the_router_is_set_and_ready_afterwards() {
        let startup = StartupRouter::new(SparkVersion::V4_3);
        assert_eq!(status(&startup, "/livez").await, 200);
        for path in ["/readyz", "/v1/submissions/status/x", "/"] {
            assert_eq!(status(&startup, path).await, 503, "{path}");
        }
        startup.open(Router::new().route("/readyz", get(|| async { "ok" })));
        assert_eq!(status(&startup, "/readyz").await, 200);
        assert_eq!(status(&startup, "/livez").await, 404, "only the router answers now");
    }
}
