//! Answers requests from process start until the router is ready. A process that waits for its database is alive:
//! restarting it would not help.

use std::sync::{Arc, OnceLock};

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::{HeaderValue, StatusCode, Uri, header},
    middleware::map_response,
    response::{IntoResponse, Response},
    routing::{MethodRouter, any, get},
};

use super::{
    health,
    kubeflow::{self, Kubeflow},
    spark::SparkFace,
};
use sparkgate_spark::SparkVersion;
use sparkgate_web::{
    face::AnyFace,
    inner, page_headers,
    problem::{Code, Problem},
    request_log::{self, RequestId},
    routes::Routes,
};

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
        let not_ready = || get(async || asks_for_patience((StatusCode::SERVICE_UNAVAILABLE, WAITING)));
        let waiting = |face: AnyFace| {
            any(async move |Extension(id): Extension<RequestId>, uri: Uri| {
                asks_for_patience(face.answer(&Problem::new(Code::Unavailable, WAITING), uri.path(), &id))
            })
        };
        let spark: MethodRouter = waiting(Arc::new(SparkFace(version)));
        let main = Routes::<()>::default().route("/livez", get(health::livez)).probe();
        let main = main.route("/readyz", not_ready()).probe();
        // Its client decides by the body whether it tries again.
        let main = main.route(kubeflow::PATH, waiting(Arc::new(Kubeflow)));
        let main = main.map(|router| router.fallback_service(spark).layer(map_response(page_headers::add)));
        // A gateway that waits for its database is one that an alert has to find.
        let management = health::starting_management_router(not_ready());
        Self { main: Entrance::new(main.within(request_log::logged)), management: Entrance::new(management) }
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
        Self { starting, ready: Arc::default() }
    }
}

async fn enter(State(entrance): State<Entrance>, request: Request) -> Response {
    inner::answer(entrance.ready.get().unwrap_or(&entrance.starting), request).await
}

fn asks_for_patience(response: impl IntoResponse) -> Response {
    let mut response = response.into_response();
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tower::ServiceExt;

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
