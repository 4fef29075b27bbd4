//! The console: pages for people. They are rendered here, read without scripts, and become live by `/v1/events`. The pages ask the
//! same use cases as the resource API, with the same caller.
//!
//! All links are relative, so that the pages work below a path prefix that a reverse proxy removes.

mod assets;
mod chart;
mod compare;
mod configuration;
mod copy;
mod filters;
mod form;
mod heading;
mod jobs;
mod key_sign_in;
mod layout;
mod list;
mod logs;
mod names;
mod operator;
mod overview;
mod page;
mod places;
mod queues;
mod reason;
mod refusal;
mod rerun;
mod rows;
mod sessions;
mod shared_reads;
mod sign_in;
mod spark;
mod submission;
mod text;
mod waiting;

use axum::{
    Router,
    extract::{Extension, OriginalUri, Request, State},
    http::{Method, StatusCode, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};

use sparkgate_service::Session;
use sparkgate_web::{
    change::About,
    compression::compress,
    face::Face,
    nowhere::{no_such_method, nothing_at},
    problem::{Code, Problem},
    request_log::RequestId,
    routes::Routes,
    state::AppState,
    time_limit::in_time,
};

pub(super) use refusal::unauthenticated;

/// The console, whose errors are pages.
#[derive(Debug)]
pub(super) struct Console;

impl Face for Console {
    fn answer(&self, problem: &Problem, path: &str, id: &RequestId) -> Response {
        refusal::answer(problem, path, id)
    }

    fn broken_off(&self, path: &str, id: &RequestId) -> Response {
        // The panic is in the log already.
        let Problem { detail, .. } = Problem::broken_off(String::new());
        self.answer(&Problem::new(Code::InternalError, detail), path, id)
    }

    fn is_for_browsers(&self) -> bool {
        true
    }
}

/// Returns all routes.
#[cfg(test)]
pub(super) fn routes() -> Routes {
    pages().merge(assets())
}

/// The pages and their forms. Callers get credentials at the sign-in, or give them back.
fn pages() -> Routes {
    Routes::default()
        .route("/console", get(async || elsewhere("console/submissions")))
        .route("/console/", get(async || elsewhere("submissions")))
        .route("/console/submissions", get(list::show))
        .route("/console/submissions/kill", post(list::kill))
        .changes(Method::POST, "kill", About::nothing)
        .route("/console/submissions/places", post(places::change_all))
        .changes(Method::POST, "change-places", About::nothing)
        .route("/console/submissions/rows", get(rows::show))
        .route("/console/submissions/{id}", get(submission::show))
        .route("/console/submissions/{id}/kill", post(submission::kill))
        .changes(Method::POST, "kill", About::submission)
        .route("/console/submissions/{id}/hold", post(waiting::hold))
        .changes(Method::POST, "hold", About::submission)
        .route("/console/submissions/{id}/release", post(waiting::release))
        .changes(Method::POST, "release", About::submission)
        .route("/console/submissions/{id}/rerun", get(rerun::show).post(rerun::submit))
        .changes(Method::POST, "submit", About::submission)
        .route("/console/submissions/{id}/logs", get(logs::show))
        .route("/console/submissions/{id}/configuration", get(configuration::show))
        .route("/console/jobs", get(jobs::list))
        .route("/console/jobs/{job}", get(jobs::show))
        .route("/console/queues", get(queues::show))
        .route("/console/queues/state", post(queues::set_state))
        .changes(Method::POST, "change-queue", About::nothing)
        .route("/console/sessions", get(sessions::show))
        .route("/console/sessions/{id}/end", post(sessions::end))
        .changes(Method::POST, "kill", About::submission)
        .route("/console/overview", get(overview::show))
        .route("/console/operator", get(operator::show))
        .route("/console/sign-in", get(sign_in::begin))
        .open()
        .route("/console/sign-in/callback", get(sign_in::callback))
        .open()
        .route("/console/sign-in/key", post(key_sign_in::begin))
        .open()
        .route("/console/sign-out", post(sign_in::sign_out))
        .open()
        .route("/console/signed-out", get(sign_in::signed_out))
        .open()
}

/// The files that the pages need, which have nothing of an installation.
fn assets() -> Routes {
    Routes::default().route("/console/assets/{hash}/{file}", get(assets::file)).open()
}

/// Returns the routes with all that a request passes, and the answer to other paths of the console.
pub(super) fn router(state: AppState) -> Routes<()> {
    let timeout = from_fn_with_state(state.settings.request_timeout, in_time);
    let finish = from_fn_with_state(state.clone(), finish);
    let routes = pages().map(|router| router.route_layer(timeout)).merge(assets());
    let routes = routes.elsewhere_below("/console/", async |OriginalUri(uri): OriginalUri| {
        nothing_at(uri.path(), "The submissions are a link above.")
    });
    let layers = |router: Router<AppState>| {
        let router = router.method_not_allowed_fallback(no_such_method);
        router.layer(finish).layer(from_fn(compress)).layer(Extension(rows::Reads::default()))
    };
    routes.map(layers).with_state(state)
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
