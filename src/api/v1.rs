//! The resource API: submissions as resources, below the same path as Spark's protocol, with its own error format.

pub(super) mod attempts;
pub(super) mod create;
mod cursor;
pub(super) mod delete;
mod dry_run;
mod event;
pub(super) mod events;
pub(super) mod executors;
mod finish;
pub(super) mod get;
mod id;
pub(super) mod list;
pub(super) mod logs;
pub(super) mod manifest;
mod model;
mod not_served;
pub(super) mod of_one;
pub(super) mod outcome;
mod params;
mod problem;
mod reply;
mod request;
mod sse;
pub(super) mod wait;

use axum::{
    Router,
    middleware::{from_fn, from_fn_with_state},
    routing::{MethodRouter, get},
};

use super::AppState;
use problem::Problem;
use reply::Reply;

pub(super) use finish::{forbidden, internal_error};

/// Returns the router of the resource API. Requests for any other path or method get a problem.
pub(super) fn router(state: AppState) -> Router {
    let submissions: MethodRouter<AppState> = get(list::list).post(create::create);
    // These routes answer at once and have a timeout; routes that wait for changes follow below.
    let quick = Router::new()
        .route("/v1/submissions", submissions)
        .route("/v1/submissions/{id}", get(get::get).delete(delete::delete))
        .route("/v1/submissions/{id}/attempts", get(attempts::attempts))
        .route("/v1/submissions/{id}/events", get(of_one::events))
        .route("/v1/submissions/{id}/executors", get(executors::executors))
        .route("/v1/submissions/{id}/logs", get(logs::logs))
        .route("/v1/submissions/{id}/manifest", get(manifest::manifest))
        .route("/v1/submissions/{id}/outcome", get(outcome::outcome))
        .route_layer(from_fn_with_state(state.settings.request_timeout, finish::in_time));
    let patient =
        Router::new().route("/v1/events", get(events::events)).route("/v1/submissions/{id}/wait", get(wait::wait));
    Router::new()
        .merge(quick)
        .merge(patient)
        .fallback(not_served::path)
        .method_not_allowed_fallback(not_served::method)
        .layer(from_fn(finish::finish))
        .with_state(state)
}

/// Returns whether a path belongs to the resource API. All others are Spark's. Spark's master answers the paths of the
/// resource API only with an error: the action is missing.
pub(super) fn serves(path: &str) -> bool {
    let Some(rest) = path.strip_prefix("/v1/") else { return false };
    let (first, rest) = rest.split_once('/').map_or((rest, None), |(first, rest)| (first, Some(rest)));
    match (first, rest) {
        ("submissions" | "events", None) => true,
        ("submissions", Some(id)) => id.starts_with("driver-"),
        _ => false,
    }
}
