//! Sessions of Spark Connect.

mod document;

use axum::{
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use utoipa::IntoParams;

use self::document::{ConnectSession, NewSession, SessionList};
use super::{reply::Reply, submissions::create::is_json};
use crate::host::Host;
use sparkgate_service::KillAnswer;
use sparkgate_submission::SubmissionId;
use sparkgate_web::{
    id::Id,
    problem::{
        Code, Problem, ProblemBody,
        responses::{Problems, SubmissionProblems},
    },
    query::{NoParameters, Query, flag},
    session::Caller,
    state::AppState,
    tasks::to_its_end,
};

/// Open a session of Spark Connect
///
/// Returns the caller's live session of this name (or the shared one of its tenant), or submits one: a driver that runs Spark Connect's server. Answers at once; the session
/// can be used when its state is `READY`. A client connects to `url`, with its credentials as `token`.
#[utoipa::path(
    post, path = "/v1/sessions", tag = "Sessions", operation_id = "openSession",
    request_body(content = NewSession, content_type = "application/json", description = "The session"),
    responses(
        Problems,
        (status = 200, description = "The live session of this name", body = ConnectSession),
        (status = 201, description = "A new session, whose driver will be started", body = ConnectSession),
        (status = 400, description = "The request is invalid; the problem names the fields", body = ProblemBody, content_type = "application/problem+json"),
        (status = 415, description = "The body is not JSON", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "A queue or the policy of the tenant doesn't accept the session", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn open(
    State(state): State<AppState>,
    Caller(caller): Caller,
    _: Query<NoParameters>,
    host: Host,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    is_json(&headers)?;
    let settings = state.service.connect.settings().clone();
    let (request, options) = document::parse(&body, caller.spark_lines().newest(), settings.idle_timeout)?;
    let service = state.service.clone();
    let opened = async move { service.connect.open(&service.submissions, &caller, request, options).await };
    let (session, is_new) = to_its_end(opened).await?;
    let document = ConnectSession::new(session, &settings, host.0.as_deref());
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(Reply::ok(document).with_status(status).into_response())
}

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ListQuery {
    /// Also return sessions that have ended, as long as their submissions are kept
    #[serde(deserialize_with = "flag")]
    all: bool,
}

/// List sessions of Spark Connect
///
/// Those that live, the newest first, at most 1000.
#[utoipa::path(
    get, path = "/v1/sessions", tag = "Sessions", operation_id = "listSessions", params(ListQuery),
    responses(Problems, (status = 200, description = "The sessions that the caller may see", body = SessionList))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Query(query): Query<ListQuery>,
    host: Host,
) -> Result<Reply<SessionList>, Problem> {
    let sessions = state.service.connect.sessions(&caller, query.all).await?;
    let settings = state.service.connect.settings();
    let items = sessions.into_iter().map(|session| ConnectSession::new(session, settings, host.0.as_deref()));
    Ok(Reply::ok(SessionList { items: items.collect() }))
}

/// Get a session of Spark Connect
///
/// Its id is that of its submission.
#[utoipa::path(
    get, path = "/v1/sessions/{id}", tag = "Sessions", operation_id = "getSession", params(Id),
    responses(
        SubmissionProblems,
        (status = 200, description = "The session", body = ConnectSession),
        (status = 404, description = "There is no such session", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    _: Query<NoParameters>,
    host: Host,
) -> Result<Reply<ConnectSession>, Problem> {
    let session = state.service.connect.session(&caller, &id).await?.ok_or_else(|| not_found(&id))?;
    Ok(Reply::ok(ConnectSession::new(session, state.service.connect.settings(), host.0.as_deref())))
}

/// End a session of Spark Connect
///
/// Kills its submission. Repeating the request changes nothing.
#[utoipa::path(
    delete, path = "/v1/sessions/{id}", tag = "Sessions", operation_id = "endSession", params(Id),
    responses(
        SubmissionProblems,
        (status = 200, description = "It has already ended", body = ConnectSession),
        (status = 202, description = "Its end is recorded", body = ConnectSession),
        (status = 404, description = "There is no such session", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn end(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    _: Query<NoParameters>,
    host: Host,
) -> Result<Reply<ConnectSession>, Problem> {
    let connect = &state.service.connect;
    if connect.session(&caller, &id).await?.is_none() {
        caller.denied(Some(&id), || "it is no session, or belongs to another tenant".to_owned());
        return Err(not_found(&id));
    }
    let KillAnswer { live, .. } = state.service.submissions.request_kill(&caller, &id).await?;
    let session = connect.session(&caller, &id).await?.ok_or_else(|| not_found(&id))?;
    let status = if live { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(Reply::ok(ConnectSession::new(session, connect.settings(), host.0.as_deref())).with_status(status))
}

fn not_found(id: &SubmissionId) -> Problem {
    Problem::new(Code::SessionNotFound, format!("There is no session {id}, or it is no longer kept."))
}
