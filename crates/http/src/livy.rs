//! Livy's batches: the same submissions for clients of Livy, such as Airflow's `LivyOperator`. A batch is a submission that came
//! over this API; its id is the submission's number. Interactive sessions don't exist here.

mod batch;
mod log;
mod new;

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{OriginalUri, Path, Request, State, rejection::PathRejection},
    http::{HeaderValue, Method, StatusCode, header},
    middleware::{Next, from_fn, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, Deserializer};
use serde_json::json;

use batch::{Batch, BatchState};
use new::ParsedBatch;
use sparkgate_service::{LivyBatch, Session, Submission};
use sparkgate_web::{
    change::About,
    face::Face,
    idempotency_key,
    nowhere::no_such_method,
    problem::{Code, Problem, reason::Reason},
    query::{Query, parsed},
    request_log::RequestId,
    routes::Routes,
    state::AppState,
    time_limit::{answered_within, in_time},
};

/// Batches of a page, unless the client asks for another number, and at most.
const PAGE: u32 = 100;
const LARGEST_PAGE: u32 = 1000;
/// Lines of a log that a client gets, unless it asks for another number, and those in the document of a batch.
const LINES: i64 = 100;
const LINES_OF_BATCH: usize = 10;

/// Livy's API, whose errors have a `msg`.
#[derive(Debug)]
pub(super) struct LivyFace;

impl Face for LivyFace {
    fn answer(&self, problem: &Problem, _: &str, _: &RequestId) -> Response {
        refused(problem.code, &problem.detail)
    }

    /// Clients of Livy send a token as a password (RFC 7617).
    fn challenge(&self) -> Option<HeaderValue> {
        Some(HeaderValue::from_static("Basic realm=\"sparkgate\", charset=\"UTF-8\""))
    }
}

fn quick() -> Routes {
    Routes::default()
        .route("/batches", get(list))
        .route("/batches/{id}", get(view).delete(delete))
        .changes(Method::DELETE, "delete-batch", About::batch)
        // Older releases of Airflow's provider for Livy ask with POST.
        .route("/batches/{id}/state", get(state).post(state))
        .route("/batches/{id}/log", get(log_lines).post(log_lines))
}

/// The routes that limit their time themselves.
fn patient() -> Routes {
    Routes::default().route("/batches", post(create)).changes(Method::POST, "submit", About::nothing)
}

/// Returns the routes with their layers. Every other path is one that Livy's API doesn't have.
pub(super) fn router(app: AppState) -> Routes<()> {
    let timeout = from_fn_with_state(app.settings.request_timeout, in_time);
    let routes = quick().map(|router| router.route_layer(timeout)).merge(patient());
    let routes = routes.map(|router| router.method_not_allowed_fallback(no_such_method));
    routes.map(|router| router.fallback(no_such_path).layer(from_fn(finish))).with_state(app)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct CreateQuery {
    do_as: Option<String>,
}

async fn create(
    State(app): State<AppState>,
    Extension(caller): Extension<Session>,
    Query(CreateQuery { do_as }): Query<CreateQuery>,
    request: Request,
) -> Result<Response, Problem> {
    let key = idempotency_key::read(request.headers());
    let key = key.map_err(|reason| Problem::new(Code::InvalidParameter, format!("Idempotency-Key: {reason}.")))?;
    let (bytes, held) = app.bodies.read(request.into_body()).await?;
    let ParsedBatch { request, mut options } = new::parse(&bytes, do_as, caller.spark_lines().newest())?;
    options.idempotency_key = key;
    let submit = app.service.submissions.submit(&caller, request, options, held);
    let accepted = answered_within(app.settings.request_timeout, submit).await??;
    let found = accepted.submission;
    let submission =
        found.document.map_err(|error| Problem::unreadable(&found.id, "was accepted before under this key", &error))?;
    let location = format!("/batches/{}", submission.number);
    let log = accepted.warnings.into_iter().map(|warning| format!("warning: {warning}")).collect();
    let batch = Batch::new(submission, log);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(batch)).into_response())
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Range {
    #[serde(deserialize_with = "number")]
    from: Option<i64>,
    #[serde(deserialize_with = "number")]
    size: Option<i64>,
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    parsed(deserializer, "a whole number").map(Some)
}

async fn list(
    State(app): State<AppState>,
    Extension(caller): Extension<Session>,
    Query(Range { from, size }): Query<Range>,
) -> Result<Response, Problem> {
    let count =
        |count: Option<i64>, default| count.map_or(default, |count| u32::try_from(count.max(0)).unwrap_or(u32::MAX));
    let (from, size) = (count(from, 0), count(size, PAGE).min(LARGEST_PAGE));
    let (batches, total) = app.service.submissions.livy_batches(&caller, from, size).await?;
    // The logs of a whole page would be a call to the cluster for each.
    let sessions: Vec<Batch> = batches.into_iter().map(|batch| Batch::new(batch, Vec::new())).collect();
    Ok(Json(json!({"from": from, "total": total, "sessions": sessions})).into_response())
}

async fn view(
    State(app): State<AppState>,
    Extension(caller): Extension<Session>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let batch = find(&app, &caller, id).await?;
    // The document is worth more than its log, which /log has, too.
    let lines = log::lines(&app.service, &caller, &batch, LINES_OF_BATCH).await.unwrap_or_default();
    Ok(Json(Batch::new(batch, lines)).into_response())
}

async fn state(
    State(app): State<AppState>,
    Extension(caller): Extension<Session>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let batch = find(&app, &caller, id).await?;
    Ok(Json(json!({"id": batch.number, "state": BatchState::from(batch.state)})).into_response())
}

async fn log_lines(
    State(app): State<AppState>,
    Extension(caller): Extension<Session>,
    id: Result<Path<String>, PathRejection>,
    Query(Range { from, size }): Query<Range>,
) -> Result<Response, Problem> {
    let batch = find(&app, &caller, id).await?;
    let lines = log::lines(&app.service, &caller, &batch, log::MOST_LINES).await?;
    let (from, part) = log::part(&lines, from.unwrap_or(-1), size.unwrap_or(LINES));
    Ok(Json(json!({"id": batch.number, "from": from, "total": lines.len(), "log": part})).into_response())
}

/// Kills a batch if it hasn't ended, and forgets it here. Its record stays for the other APIs.
async fn delete(
    State(app): State<AppState>,
    Extension(caller): Extension<Session>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, Problem> {
    let batch = find(&app, &caller, id).await?;
    app.service.submissions.delete_livy_batch(&caller, &batch.id).await?;
    Ok(Json(json!({"msg": "deleted"})).into_response())
}

/// Returns the batch that a path names by its id, or by its name.
async fn find(
    app: &AppState,
    caller: &Session,
    id: Result<Path<String>, PathRejection>,
) -> Result<Submission, Problem> {
    let Ok(Path(id)) = id else { return Err(unknown("")) };
    if id.contains('\0') {
        return Err(unknown(&id));
    }
    let batch = id.parse().map_or(LivyBatch::Name(&id), LivyBatch::Number);
    app.service.submissions.livy_batch(caller, batch).await?.ok_or_else(|| unknown(&id))
}

fn unknown(id: &str) -> Problem {
    Problem::new(Code::SubmissionNotFound, format!("Session '{id}' not found."))
}

async fn no_such_path(OriginalUri(uri): OriginalUri) -> Problem {
    let detail =
        format!("There is nothing at {}. This gateway has Livy's batches, and no interactive sessions.", uri.path());
    Problem::new(Code::NotFound, detail)
}

/// Writes the problem that a handler returned.
async fn finish(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let Some(problem) = response.extensions_mut().remove::<Arc<Problem>>() else { return response };
    problem.log();
    let mut written = refused(problem.code, &new::in_words_of_livy(&problem));
    written.extensions_mut().insert(Reason::of(&problem));
    for name in [header::RETRY_AFTER, header::ALLOW] {
        if let Some(value) = response.headers_mut().remove(&name) {
            written.headers_mut().insert(name, value);
        }
    }
    written
}

/// Returns an error with Livy's body and its status.
fn refused(code: Code, detail: &str) -> Response {
    let (status, msg) = match code {
        Code::TooManyRequests => (400, format!("Rejected, too many sessions are being created! {detail}")),
        // A batch that can't be as it is, or collides with another one.
        _ if matches!(code.status(), 400 | 409 | 422) => (400, format!("Rejected, Reason: {detail}")),
        _ => (code.status(), detail.to_owned()),
    };
    (StatusCode::from_u16(status).unwrap_or_default(), Json(json!({"msg": msg}))).into_response()
}
