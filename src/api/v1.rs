//! The resource API: submissions as resources, below the same path as Spark's protocol, with its own error format.

mod attempts;
mod audit;
mod caller;
mod cursor;
mod events;
mod executors;
mod files;
pub mod fuzzing;
pub(super) mod logs;
pub(super) mod middleware;
mod reply;
pub(super) mod spark_ui;
mod spark_versions;
pub(super) mod submissions;
mod tokens;
mod usage;
mod webhooks;

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
    routing::get,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{compression::compress, nowhere::no_such_method, state::AppState, time_limit::in_time};

pub use audit::audit_line;

/// Returns all routes with their descriptions.
pub(super) fn routes() -> OpenApiRouter<AppState> {
    quick().merge(patient())
}

/// The routes that answer at once and have a timeout.
fn quick() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(submissions::list))
        .routes(routes!(submissions::get, submissions::kill))
        .routes(routes!(submissions::wait::outcome))
        .routes(routes!(submissions::rerun::request))
        .routes(routes!(attempts::attempts))
        .routes(routes!(attempts::manifest))
        .routes(routes!(events::of_submission))
        .routes(routes!(executors::executors))
        .routes(routes!(logs::logs))
        .routes(routes!(spark_ui::open))
        .routes(routes!(spark_versions::list))
        .routes(routes!(caller::me))
        .routes(routes!(caller::login))
        .routes(routes!(tokens::list, tokens::create))
        .routes(routes!(tokens::revoke))
        .routes(routes!(audit::audit))
        .routes(routes!(usage::usage))
        .routes(routes!(files::manage::list))
        .routes(routes!(webhooks::list, webhooks::create))
        .routes(routes!(webhooks::get, webhooks::delete))
        .routes(routes!(webhooks::rotate))
        .routes(routes!(webhooks::deliveries::deliveries))
        .routes(routes!(webhooks::deliveries::replay))
        .routes(routes!(webhooks::deliveries::replay_one))
}

/// The routes that wait for changes or for a body. They limit their time themselves.
fn patient() -> OpenApiRouter<AppState> {
    OpenApiRouter::default()
        .routes(routes!(submissions::create::create))
        .routes(routes!(submissions::rerun::rerun))
        .routes(routes!(events::follow))
        .routes(routes!(files::upload, files::download, files::parts::resume, files::manage::delete))
        .routes(routes!(files::fetch))
        .routes(routes!(submissions::wait::wait))
}

/// Returns the router of the resource API. Requests for any other path or method get a problem.
pub(super) fn router(state: AppState) -> Router {
    let timeout = from_fn_with_state(state.settings.request_timeout, in_time);
    let below = ["/v1/submissions/{id}/ui/", "/v1/submissions/{id}/ui/{*path}"];
    let quick = below.iter().fold(Router::from(quick()), |router, path| router.route(path, get(spark_ui::below)));
    quick
        .route_layer(timeout)
        .merge(Router::from(patient()))
        .fallback(middleware::no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn(middleware::finish))
        .layer(from_fn(compress))
        .with_state(state)
}

/// Returns the signed URLs of files alone.
pub(super) fn signed_files(state: AppState) -> Router {
    Router::new()
        .route("/v1/files/{sha256}/{id}/{signature}/{name}", get(files::fetch))
        .fallback(middleware::no_such_path)
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn(middleware::finish))
        .with_state(state)
}

/// Returns whether a path belongs to the resource API. All others are Spark's. Spark's master answers the paths of the
/// resource API only with an error: the action is missing.
pub(super) fn serves(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/v1/") else { return false };
    let (first, rest) = rest.split_once('/').map_or((rest, None), |(first, rest)| (first, Some(rest)));
    match (first, rest) {
        (
            "submissions" | "events" | "files" | "me" | "login" | "tokens" | "audit" | "spark-versions" | "usage"
            | "webhooks",
            None,
        )
        | ("tokens" | "files" | "ui" | "webhooks", Some(_)) => true,
        ("submissions", Some(id)) => id.starts_with("driver-"),
        _ => false,
    }
}
