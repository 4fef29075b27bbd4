//! The HTTP layer: routes and the middleware of every request. Handlers translate; the service below decides.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension, Router,
    extract::Request,
    middleware::{from_fn, from_fn_with_state},
    response::Response,
    routing::get,
};
use request_log::RequestId;
use tower::ServiceExt;

use crate::service::Gateway;

mod body;
mod catch_panic;
mod door;
mod health;
mod idempotency_key;
mod listener;
mod openapi;
mod request_log;
mod spark;
mod v1;

pub use door::Door;
pub use listener::{Connection, Listener};
pub use openapi::openapi;

/// Limits of the HTTP layer.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The largest body of a create request, in bytes: `spark.master.rest.maxRequestBodySize`, 100 MiB by default.
    pub max_request_body_bytes: usize,
    /// Timeout for receiving a request's body, and again for answering the request.
    pub request_timeout: Duration,
    /// The most clients that may follow events or wait for a submission at the same time.
    pub max_subscribers: usize,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { max_request_body_bytes: 100 << 20, request_timeout: Duration::from_secs(30), max_subscribers: 2000 }
    }
}

#[derive(Clone)]
struct AppState {
    gateway: Gateway,
    settings: HttpSettings,
}

/// Returns the router of the gateway's port. Paths without a route go to Spark's protocol, which answers every path.
pub fn router(gateway: Gateway, settings: HttpSettings) -> Router {
    let version = gateway.spark_version();
    let state = AppState { gateway, settings };
    let (all, resources) = (state.clone(), v1::router(state.clone()));
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .merge(openapi::page())
        .fallback(move |Extension(id), request| serve(all.clone(), resources.clone(), id, request))
        // The last layer is the outermost: every response, also that to a panic, gets its id and its line in the log.
        .layer(from_fn_with_state(version, catch_panic::catch_panic))
        .layer(from_fn(request_log::request_log))
        .with_state(state)
}

/// Dispatches a request to the resource API or to Spark's protocol, which share the prefix `/v1/submissions`.
async fn serve(state: AppState, resources: Router, id: RequestId, request: Request) -> Response {
    if !v1::serves(request.uri().path()) {
        return spark::serve(&state, &id, request).await;
    }
    let answer: Result<Response, Infallible> = resources.oneshot(request).await;
    let Ok(response) = answer;
    response
}
