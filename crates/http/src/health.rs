//! Probes for Kubernetes and load balancers. They are not part of Spark's protocol.
//!
//! The management port serves them and the metrics, and nothing else, so that neither needs a place among the connections of
//! clients, TLS or credentials.

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{MethodRouter, get},
};
use utoipa_axum::routes;

use sparkgate_metrics::{CONTENT_TYPE, exposition};
use sparkgate_service::{Readiness, Reason, Service};
use sparkgate_web::{request_log, routes::Routes, state::AppState};

/// Returns the router of the management port. Its `/readyz` has the details that `/readyz` of the gateway's port leaves out, and
/// what the cluster lacks to enforce the boundaries of tenants. Its `/metrics` has the metrics of this process (`docs/reference/metrics.md`).
pub fn management_router(service: Service) -> Router {
    let detailed = |State(service): State<Service>| async move {
        let notes = service.boundaries.findings();
        answer(service.health.readiness().await, |reason| reason.to_string(), &notes)
    };
    let metrics = async |State(service): State<Service>| as_metrics(service.scrape.text().await);
    logged(management(get(detailed), get(metrics)).with_state(service))
}

/// Returns the router of the management port of a process that has no service yet.
pub(super) fn starting_management_router(not_ready: MethodRouter) -> Router {
    logged(management(not_ready, get(async || as_metrics(exposition()))))
}

fn management<S: Clone + Send + Sync + 'static>(readyz: MethodRouter<S>, metrics: MethodRouter<S>) -> Routes<S> {
    let routes = Routes::default().route("/livez", get(livez)).probe().route("/readyz", readyz).probe();
    routes.route("/metrics", metrics).probe().map(|router| router.fallback(only_probes))
}

fn logged(routes: Routes<()>) -> Router {
    routes.within(request_log::logged)
}

/// Returns the routes of the probes on the gateway's port.
pub(super) fn routes() -> Routes {
    Routes::default().described(routes!(livez)).open().probe().described(routes!(readyz)).open().probe()
}

/// Answers the other paths of the management port.
async fn only_probes() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "This port serves /livez, /readyz and /metrics only.")
}

fn as_metrics(text: Result<String, std::fmt::Error>) -> Response {
    match text {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

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
    answer(state.service.health.readiness().await, |reason| reason.summary.to_owned(), &[])
}

/// Returns the answer to a readiness probe, with notes in lines of their own.
fn answer(readiness: Readiness, text: impl FnOnce(&Reason) -> String, notes: &[String]) -> Response {
    let notes: String = notes.iter().map(|note| format!("\n{note}")).collect();
    match readiness {
        Readiness::Ready => format!("ok{notes}").into_response(),
        // No replica reaches the cluster. Submissions are still accepted.
        Readiness::Accepting(reason) => format!("ok, but {}{notes}", text(&reason)).into_response(),
        Readiness::NotReady(reason) => {
            let text = format!("{}{notes}", text(&reason));
            (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], text).into_response()
        }
    }
}
