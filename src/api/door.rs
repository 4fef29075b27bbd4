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
pub struct Door {
    shut: Router,
    inside: Arc<OnceLock<Router>>,
}

impl Door {
    /// Creates a door that is shut. Its errors name this Spark release.
    pub fn new(version: SparkVersion) -> Self {
        let shut = Router::new()
            .route("/livez", get(health::livez))
            .route("/readyz", get(|| async { asks_for_patience((StatusCode::SERVICE_UNAVAILABLE, WAITING)) }))
            .fallback(async move || {
                asks_for_patience(spark::error(StatusCode::SERVICE_UNAVAILABLE, WAITING.to_owned(), version))
            });
        Self { shut: request_log::logged(shut), inside: Arc::default() }
    }

    /// Sends every request to `router` from now on, also on connections that are already open.
    pub fn open(&self, router: Router) {
        // The door is opened once, so the result needs no check.
        let _ = self.inside.set(router);
    }

    /// Returns the router to serve.
    pub fn router(&self) -> Router {
        Router::new().fallback(enter).with_state(self.clone())
    }
}

async fn enter(State(door): State<Door>, request: Request) -> Response {
    let router = door.inside.get().unwrap_or(&door.shut).clone();
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

    async fn status(door: &Door, path: &str) -> u16 {
        let request = Request::get(path).body(Body::empty()).unwrap();
        door.router().oneshot(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn process_is_alive_before_the_router_is_set_and_ready_afterwards() {
        let door = Door::new(SparkVersion::V4_3);
        assert_eq!(status(&door, "/livez").await, 200);
        for path in ["/readyz", "/v1/submissions/status/x", "/"] {
            assert_eq!(status(&door, path).await, 503, "{path}");
        }
        door.open(Router::new().route("/readyz", get(|| async { "ok" })));
        assert_eq!(status(&door, "/readyz").await, 200);
        assert_eq!(status(&door, "/livez").await, 404, "only the router answers now");
    }
}
