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
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::get,
};
use tower::ServiceExt;

use super::{
    faces::{Face, Faces},
    health, kubeflow, page_headers,
    problem::Code,
    request_log, spark,
};
use crate::spark::SparkVersion;

const WAITING: &str =
    "Sparkgate is starting and waits for its database. Try again in a moment; see its log for details.";

/// Stands in for the routers of both ports until they are ready. Until then `/livez` answers 200 and every other path 503.
/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct StartupRouter {
    main: Entrance,
    management: Entrance,
}

/// A router that is replaced once.
#[derive(Debug, Clone)]
struct Entrance {
    starting: Router,
    ready: Arc<OnceLock<Router>>,
}

impl StartupRouter {
    /// Creates routers that are not ready. Their errors name this Spark release.
    pub fn new(version: SparkVersion) -> Self {
        let probes = Router::new()
            .route("/livez", get(health::livez))
            .route("/readyz", get(|| async { asks_for_patience((StatusCode::SERVICE_UNAVAILABLE, WAITING)) }));
        let faces = Faces::all(version, None);
        let main = probes.clone().fallback(async move |request: Request| {
            let answer = match faces.of(request.uri().path()) {
                // Its client decides by the body whether it tries again.
                Face::Kubeflow => kubeflow::refused(Code::Unavailable, WAITING),
                _ => spark::error(StatusCode::SERVICE_UNAVAILABLE, WAITING.to_owned(), version),
            };
            asks_for_patience(answer)
        });
        // A gateway that waits for its database is one that an alert has to find.
        let management = probes.route("/metrics", get(health::metrics)).fallback(health::only_probes);
        Self { main: Entrance::new(main), management: Entrance::new(management) }
    }

    /// Sends every request of the gateway's port to `router` from now on, and those of the management port to `management`, also
    /// on connections that are already open.
    pub fn open(&self, router: Router, management: Router) {
        // Each is set once, so the results need no check.
        let _ = self.main.ready.set(router);
        let _ = self.management.ready.set(management);
    }

    /// Returns the router to serve on the gateway's port.
    pub fn router(&self) -> Router {
        Router::new().fallback(enter).with_state(self.main.clone())
    }

    /// Returns the router to serve on the management port.
    pub fn management(&self) -> Router {
        Router::new().fallback(enter).with_state(self.management.clone())
    }
}

impl Entrance {
    fn new(starting: Router) -> Self {
        Self { starting: request_log::logged(starting.layer(map_response(page_headers::add))), ready: Arc::default() }
    }
}

async fn enter(State(entrance): State<Entrance>, request: Request) -> Response {
    let router = entrance.ready.get().unwrap_or(&entrance.starting).clone();
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

    async fn status(router: Router, path: &str) -> u16 {
        let request = Request::get(path).body(Body::empty()).unwrap();
        router.oneshot(request).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn process_is_alive_before_the_routers_are_set_and_ready_afterwards() {
        let startup = StartupRouter::new(SparkVersion::V4_3);
        assert_eq!(status(startup.management(), "/metrics").await, 200);
        assert_eq!(status(startup.router(), "/metrics").await, 503);
        for router in [startup.router(), startup.management()] {
            assert_eq!(status(router.clone(), "/livez").await, 200);
            assert_eq!(status(router, "/readyz").await, 503);
        }
        for path in ["/v1/submissions/status/x", "/"] {
            assert_eq!(status(startup.router(), path).await, 503, "{path}");
            assert_eq!(status(startup.management(), path).await, 404, "{path}");
        }
        let ready = || Router::new().route("/readyz", get(|| async { "ok" }));
        startup.open(ready(), ready());
        for router in [startup.router(), startup.management()] {
            assert_eq!(status(router.clone(), "/readyz").await, 200);
            assert_eq!(status(router, "/livez").await, 404, "only the router that was set answers now");
        }
    }
}
