//! The HTTP face: routes and what surrounds every request. Handlers translate; the service below decides.

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

/// What the HTTP face may spend on one request.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The largest body of a create request, in bytes: `spark.master.rest.maxRequestBodySize`, 100 MiB by default.
    pub max_request_body_bytes: usize,
    /// How long a request may take to arrive, and then again to be answered.
    pub request_timeout: Duration,
    /// Clients that follow changes, or wait for one, at the same time.
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

/// All that is served on the gateway's port. What no route names is Spark's: its protocol has an answer to any path.
pub fn router(gateway: Gateway, settings: HttpSettings) -> Router {
    let version = gateway.spark_version();
    let state = AppState { gateway, settings };
    let (all, resources) = (state.clone(), v1::router(state.clone()));
    Router::new()
        .route("/livez", get(health::livez))
        .route("/readyz", get(health::readyz))
        .merge(openapi::page())
        .fallback(move |Extension(id), request| serve(all.clone(), resources.clone(), id, request))
        // The last is the outermost: every answer, that to a panic included, gets its id and its line in the log.
        .layer(from_fn_with_state(version, catch_panic::catch_panic))
        .layer(from_fn(request_log::request_log))
        .with_state(state)
}

/// Resources to one side, Spark's protocol to the other: both live below `/v1/submissions`.
async fn serve(state: AppState, resources: Router, id: RequestId, request: Request) -> Response {
    if !v1::serves(request.uri().path()) {
        return spark::serve(&state, &id, request).await;
    }
    let answer: Result<Response, Infallible> = resources.oneshot(request).await;
    let Ok(response) = answer;
    response
}
