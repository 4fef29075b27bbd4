//! The HTTP layer: routes and the middleware of every request. Handlers translate; the service below decides.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension, Router,
    extract::{Request, State},
    http::Method,
    middleware::{from_fn, from_fn_with_state, map_response},
    response::Response,
};
use body::Bodies;
use request_log::RequestId;
use tower::ServiceExt;

use crate::{service::Service, spark::SparkVersion};

mod authn;
mod body;
mod browser;
mod catch_panic;
mod console;
mod health;
mod home;
mod idempotency_key;
mod openapi;
mod page_headers;
mod request_log;
mod route_template;
mod server;
mod server_span;
mod spark;
mod startup;
mod v1;

pub use browser::{BrowserSettings, OriginError};
pub use health::management_router;
pub use openapi::openapi;
pub use server::{NetworkError, ServerSettings, Tls, TlsError, TlsFiles, TrustedProxies, serve};
pub use startup::StartupRouter;
pub use v1::audit_line;
pub(crate) use v1::closest;
#[doc(hidden)]
pub use v1::fuzzing;

/// Limits of the HTTP layer.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The largest body of a create request, in bytes: 8 MiB by default.
    pub max_request_body_bytes: usize,
    /// The most bytes of all create requests' bodies that are read or held at the same time; more wait. 64 MiB by default, and
    /// at least one largest body.
    pub max_body_bytes_in_flight: usize,
    /// Timeout for receiving a request's body, and again for answering the request.
    pub request_timeout: Duration,
    /// The most clients that may follow events or wait for a submission at the same time.
    pub max_subscribers: usize,
    pub browser: BrowserSettings,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            max_request_body_bytes: 8 << 20,
            max_body_bytes_in_flight: 64 << 20,
            request_timeout: Duration::from_secs(30),
            max_subscribers: 2000,
            browser: BrowserSettings::default(),
        }
    }
}

#[derive(Clone)]
struct AppState {
    service: Service,
    settings: HttpSettings,
    bodies: Bodies,
}

/// Returns the router of the gateway's port. Paths without a route go to Spark's protocol, which answers every path.
///
/// # Errors
/// An origin of the settings that can't be used.
pub fn router(service: Service, settings: HttpSettings) -> Result<Router, OriginError> {
    let version = service.submissions.spark_version();
    let browser = settings.browser.clone();
    let authentication = authn::Authentication { authenticator: service.authenticator.clone(), version };
    let state = AppState { bodies: Bodies::new(&settings), service, settings };
    let faces = Faces { resources: v1::router(state.clone()), console: console::router(state.clone()) };
    let all = state.clone();
    let router = Router::from(openapi::probes())
        .merge(openapi::page().layer(from_fn(v1::compress)))
        .fallback(move |Extension(id), request| face(all.clone(), faces.clone(), id, request))
        .with_state(state)
        .layer(from_fn_with_state(authentication, authn::authenticate));
    enclosed(router, &browser, version)
}

/// Returns the router of the port for clients of Spark's protocol that send no credentials: stock `spark-submit`. It serves that
/// protocol only, and every caller is the principal that the access file names.
///
/// # Errors
/// An origin of the settings that can't be used.
pub fn spark_listener(service: Service, settings: HttpSettings) -> Result<Router, OriginError> {
    let version = service.submissions.spark_version();
    let browser = settings.browser.clone();
    let authentication = authn::Authentication { authenticator: service.authenticator.clone(), version };
    let state = AppState { bodies: Bodies::new(&settings), service, settings };
    let serve = async move |State(state): State<AppState>, Extension(id): Extension<RequestId>, request: Request| {
        spark::serve(&state, &id, request).await
    };
    let router = Router::new()
        .fallback(serve)
        .with_state(state)
        .layer(from_fn_with_state(authentication, authn::of_spark_listener));
    enclosed(router, &browser, version)
}

/// Puts around a router what every request of clients passes.
fn enclosed(router: Router, browser: &BrowserSettings, version: SparkVersion) -> Result<Router, OriginError> {
    // The last is the outermost: every answer, that to a panic included, gets its id and its line in the log.
    let router = browser::guard(router, browser, version)?.layer(from_fn_with_state(version, catch_panic::catch_panic));
    Ok(request_log::logged(server_span::traced(router.layer(map_response(page_headers::add)))))
}

/// What answers a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Face {
    Resources,
    Console,
    Spark,
}

impl Face {
    /// Returns the face of a path. Spark's protocol answers every path that no other has.
    fn of(path: &str) -> Self {
        if v1::serves(path) {
            return Self::Resources;
        }
        if console::serves(path) { Self::Console } else { Self::Spark }
    }
}

/// The routers of the paths that Spark's protocol doesn't have.
#[derive(Clone)]
struct Faces {
    resources: Router,
    console: Router,
}

/// Dispatches a request to the resource API, the console, or Spark's protocol, which answers all other paths.
async fn face(state: AppState, faces: Faces, id: RequestId, request: Request) -> Response {
    let router = match Face::of(request.uri().path()) {
        Face::Resources => faces.resources,
        Face::Console => faces.console,
        Face::Spark => match home::answer(&request, &id) {
            Some(answer) => return answer,
            None => return spark::serve(&state, &id, request).await,
        },
    };
    let is_head = request.method() == Method::HEAD;
    let answer: Result<Response, Infallible> = router.oneshot(request).await;
    let Ok(response) = answer;
    if is_head { v1::without_length_of_nothing(response) } else { response }
}
