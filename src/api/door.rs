//! What the port answers from the first moment on: a process that waits for its database is alive, and nobody gains by
//! its being started again.

use std::{
    convert::Infallible,
    sync::{Arc, OnceLock},
};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header},
    middleware::from_fn,
    response::{IntoResponse, Response},
    routing::get,
};
use tower::ServiceExt;

use super::{health, request_log, spark};
use crate::spark::SparkVersion;

const WAITING: &str = "Sparkgate is starting and waits for its database. Try again in a moment; its log tells more.";

/// In front of a router that isn't there yet. Until then `/livez` answers 200 and all else 503. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Door {
    shut: Router,
    inside: Arc<OnceLock<Router>>,
}

impl Door {
    /// A door that is shut; its errors name this release.
    pub fn new(version: SparkVersion) -> Self {
        let shut = Router::new()
            .route("/livez", get(health::livez))
            .route("/readyz", get(|| async { asks_for_patience((StatusCode::SERVICE_UNAVAILABLE, WAITING)) }))
            .fallback(async move || {
                asks_for_patience(spark::error(StatusCode::SERVICE_UNAVAILABLE, WAITING.to_owned(), version))
            })
            .layer(from_fn(request_log::request_log));
        Self { shut, inside: Arc::default() }
    }

    /// From now on every request goes to `router`, on connections that are open already too.
    pub fn open(&self, router: Router) {
        // It is opened once.
        let _ = self.inside.set(router);
    }

    /// To be served.
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
    async fn alive_before_it_is_open_and_ready_afterwards() {
        let door = Door::new(SparkVersion::V4_3);
        assert_eq!(status(&door, "/livez").await, 200);
        for path in ["/readyz", "/v1/submissions/status/x", "/"] {
            assert_eq!(status(&door, path).await, 503, "{path}");
        }
        door.open(Router::new().route("/readyz", get(|| async { "ok" })));
        assert_eq!(status(&door, "/readyz").await, 200);
        assert_eq!(status(&door, "/livez").await, 404, "the router inside decides alone");
    }
}
