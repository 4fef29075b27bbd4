//! The console: pages for people. They are rendered here, read without scripts, and become live by `/v1/events`. The pages ask the
//! same use cases as the resource API, with the same caller.
//!
//! All links are relative, so that the pages work below a path prefix that a reverse proxy removes.

mod assets;
mod chart;
mod compare;
mod configuration;
mod copy;
mod form;
mod layout;
mod list;
mod logs;
mod operator;
mod overview;
mod page;
mod refusal;
mod rerun;
mod rows;
mod shared_reads;
mod sign_in;
mod spark;
mod submission;
mod text;

use axum::{
    Router,
    extract::{Extension, Request, State},
    http::{StatusCode, Uri, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};

use super::{
    compression::compress,
    nowhere::{no_such_method, nothing_at},
    request_log::RequestId,
    state::AppState,
    time_limit::in_time,
};
use crate::service::Session;

pub(super) use refusal::{internal_error, refused, unauthenticated};

/// Returns whether a path belongs to the console.
pub(super) fn serves(path: &str) -> bool {
    path == "/console" || path.starts_with("/console/")
}

/// Returns whether a path is answered without a caller: the sign-in, and the files that its pages need, which have nothing of an
/// installation.
pub(super) fn is_open(path: &str) -> bool {
    path.starts_with("/console/assets/") || sign_in::serves(path)
}

/// Returns the router of the console.
pub(super) fn router(state: AppState) -> Router {
    let timeout = from_fn_with_state(state.settings.request_timeout, in_time);
    Router::new()
        .route("/console", get(async || elsewhere("console/submissions")))
        .route("/console/", get(async || elsewhere("submissions")))
        .route("/console/submissions", get(list::show))
        .route("/console/submissions/kill", post(list::kill))
        .route("/console/submissions/rows", get(rows::show))
        .route("/console/submissions/{id}", get(submission::show))
        .route("/console/submissions/{id}/kill", post(submission::kill))
        .route("/console/submissions/{id}/rerun", post(rerun::submit))
        .route("/console/submissions/{id}/logs", get(logs::show))
        .route("/console/submissions/{id}/configuration", get(configuration::show))
        .route("/console/overview", get(overview::show))
        .route("/console/operator", get(operator::show))
        .route("/console/sign-in", get(sign_in::begin))
        .route("/console/sign-in/callback", get(sign_in::callback))
        .route("/console/sign-out", post(sign_in::sign_out))
        .route("/console/signed-out", get(sign_in::signed_out))
        .route_layer(timeout)
        .route("/console/assets/{hash}/{file}", get(assets::file))
        .fallback(async |uri: Uri| nothing_at(uri.path(), "The submissions are a link above."))
        .method_not_allowed_fallback(no_such_method)
        .layer(from_fn_with_state(state.clone(), finish))
        .layer(from_fn(compress))
        .layer(Extension(rows::Reads::default()))
        .with_state(state)
}

/// Writes the problem that the handler returned, as a page.
async fn finish(
    State(state): State<AppState>,
    Extension(id): Extension<RequestId>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    let caller = request.extensions().get::<Session>().cloned();
    let response = next.run(request).await;
    refusal::written(response, &path, caller.as_ref(), &id, &state.service.authenticator)
}

/// Redirects to a path relative to that of the request.
fn elsewhere(location: &'static str) -> Response {
    (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, location)]).into_response()
}
