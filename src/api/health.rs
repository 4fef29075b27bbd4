//! Probes for Kubernetes and load balancers. They are not part of Spark's protocol.

use axum::{
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

use super::AppState;
use crate::service::Readiness;

/// Check that the process is alive
#[utoipa::path(
    get, path = "/livez", tag = "Probes",
    responses((status = 200, description = "The process runs", body = String, content_type = "text/plain"))
)]
pub(super) async fn livez() -> &'static str {
    "ok"
}

/// Check that the gateway is ready
///
/// It can accept and follow submissions: the database answers and the cluster is being watched.
#[utoipa::path(
    get, path = "/readyz", tag = "Probes",
    responses(
        (status = 200, description = "Ready", body = String, content_type = "text/plain"),
        (status = 503, description = "Not ready; the text gives the reason", body = String, content_type = "text/plain"),
    )
)]
pub(super) async fn readyz(State(state): State<AppState>) -> Response {
    match state.service.health.readiness().await {
        Readiness::Ready => "ok".into_response(),
        // No replica reaches the cluster. Submissions are still accepted.
        Readiness::Accepting(trouble) => format!("ok, but {trouble}").into_response(),
        Readiness::NotReady(reason) => {
            (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], reason).into_response()
        }
    }
}
