//! The resource API: submissions as resources, below the same path as Spark's protocol, with its own error format.

mod attempts;
mod audit;
mod caller;
mod events;
mod executors;
mod files;
pub mod fuzzing;
pub(crate) mod jobs;
mod launch_changes;
pub(super) mod logs;
pub(super) mod middleware;
pub(crate) mod queues;
mod reply;
mod sessions;
pub(super) mod spark_ui;
mod spark_versions;
pub(super) mod submissions;
mod tokens;
mod usage;
mod webhooks;

use axum::{
    http::Method,
    middleware::{from_fn, from_fn_with_state},
    response::Response,
    routing::get,
};
use utoipa_axum::routes;

use sparkgate_web::{
    change::About,
    compression::compress,
    face::Face,
    nowhere::no_such_method,
    problem::Problem,
    request_log::RequestId,
    routes::{Routes, Uploads},
    state::AppState,
    time_limit::in_time,
};

pub use audit::audit_line;

/// The resource API, whose errors are problem documents.
#[derive(Debug)]
pub(super) struct Resources;

impl Face for Resources {
    fn answer(&self, problem: &Problem, path: &str, id: &RequestId) -> Response {
        middleware::answer(problem, path, id)
    }

    fn broken_off(&self, path: &str, id: &RequestId) -> Response {
        self.answer(&Problem::broken_off("a request handler panicked".to_owned()), path, id)
    }
}

/// Returns all routes.
pub(super) fn routes() -> Routes {
    quick().merge(patient()).merge(signed_files())
}

/// The routes that answer at once and have a timeout.
fn quick() -> Routes {
    Routes::default()
        .described(routes!(submissions::list))
        .described(routes!(submissions::get, submissions::kill))
        .changes(Method::DELETE, "kill", About::submission)
        .described(routes!(submissions::wait::outcome))
        .described(routes!(jobs::list))
        .described(routes!(jobs::get))
        .described(routes!(submissions::rerun::request))
        .described(routes!(queues::list))
        .described(routes!(queues::set_state))
        .changes(Method::PUT, "change-queue", About::nothing)
        .described(routes!(queues::hold::hold, queues::hold::release))
        .changes(Method::PUT, "hold", About::submission)
        .changes(Method::DELETE, "release", About::submission)
        .described(routes!(queues::places::change_all))
        .changes(Method::PUT, "change-places", About::nothing)
        .described(routes!(queues::requeue::requeue))
        .changes(Method::PUT, "requeue", About::submission)
        .described(routes!(sessions::list, sessions::open))
        .changes(Method::POST, "submit", About::nothing)
        .described(routes!(sessions::get, sessions::end))
        .changes(Method::DELETE, "kill", About::submission)
        .described(routes!(attempts::attempts))
        .described(routes!(attempts::manifest))
        .described(routes!(events::list_for_submission))
        .described(routes!(executors::executors))
        .described(routes!(logs::logs))
        .read_by_pages()
        .described(routes!(spark_ui::open))
        .opened_by_users()
        .route("/v1/submissions/{id}/ui/", get(spark_ui::below))
        .opened_by_users()
        .route("/v1/submissions/{id}/ui/{*path}", get(spark_ui::below))
        .opened_by_users()
        .described(routes!(spark_versions::list))
        .described(routes!(caller::me))
        .described(routes!(caller::login))
        .open()
        .described(routes!(tokens::list, tokens::create))
        .changes(Method::POST, "create-key", About::nothing)
        .described(routes!(tokens::revoke))
        .changes(Method::DELETE, "revoke-key", About::key)
        .described(routes!(audit::audit))
        .described(routes!(usage::usage))
        .described(routes!(files::manage::list))
        .described(routes!(webhooks::list, webhooks::create))
        .changes(Method::POST, "create-webhook", About::nothing)
        .described(routes!(webhooks::get, webhooks::delete))
        .changes(Method::DELETE, "delete-webhook", About::webhook)
        .described(routes!(webhooks::rotate))
        .changes(Method::POST, "rotate-webhook", About::webhook)
        .described(routes!(webhooks::deliveries::deliveries))
        .described(routes!(webhooks::deliveries::replay))
        .changes(Method::POST, "replay-webhook", About::webhook)
        .described(routes!(webhooks::deliveries::replay_one))
        .changes(Method::POST, "replay-webhook", About::webhook)
}

/// The routes that wait for changes or for a body. They limit their time themselves.
fn patient() -> Routes {
    Routes::default()
        .described(routes!(submissions::create::create))
        .changes(Method::POST, "submit", About::nothing)
        .uploads(Uploads::Forms)
        .described(routes!(submissions::rerun::rerun))
        .changes(Method::POST, "submit", About::submission)
        .described(routes!(submissions::wait::wait))
        .described(routes!(events::follow))
        .read_by_pages()
        .described(routes!(files::upload, files::download, files::parts::resume, files::manage::delete))
        .changes(Method::PUT, "upload-file", About::file)
        .changes(Method::PATCH, "upload-file", About::file)
        .changes(Method::DELETE, "delete-file", About::file)
        .uploads(Uploads::Files)
}

/// The signed URLs of files. A signature is a credential.
fn signed_files() -> Routes {
    Routes::default().described(routes!(files::fetch)).open().secret(5)
}

/// Returns the routes with all that a request passes, and the answer to other paths of the API.
pub(super) fn router(state: AppState) -> Routes<()> {
    let timeout = from_fn_with_state(state.settings.request_timeout, in_time);
    let routes = quick().map(|router| router.route_layer(timeout)).merge(patient()).merge(signed_files());
    // Spark's protocol answers all other paths.
    let below = [
        "/v1/files/",
        "/v1/jobs/",
        "/v1/queues/",
        "/v1/sessions/",
        "/v1/submissions/{id}/",
        "/v1/tokens/",
        "/v1/ui/",
        "/v1/webhooks/",
    ];
    let routes = below.iter().fold(routes, |routes, path| routes.elsewhere_below(path, middleware::no_such_path));
    finished(routes).map(|router| router.layer(from_fn(compress))).with_state(state)
}

/// Returns the signed URLs of files alone.
pub(super) fn signed_files_alone(state: AppState) -> Routes<()> {
    finished(signed_files().map(|router| router.fallback(middleware::no_such_path))).with_state(state)
}

fn finished(routes: Routes) -> Routes {
    routes.map(|router| router.method_not_allowed_fallback(no_such_method).layer(from_fn(middleware::finish)))
}

/// Returns whether a path below that of submissions is one of Spark's protocol, which shares it: Spark's master answers it, whatever
/// follows. Only ids of submissions begin with `driver-`.
pub(super) fn is_of_spark(path: &str) -> bool {
    path.strip_prefix("/v1/submissions/").is_some_and(|rest| !rest.starts_with("driver-"))
}
