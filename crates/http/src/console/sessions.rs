//! The live sessions of Spark Connect: who uses them, and when they end.

use axum::{extract::State, http::Uri, response::Response};
use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::{
    layout::{Frame, Section, word},
    names::Names,
    page::{page, seen_at},
    text::{ago, duration},
};
use crate::{host::Host, v1::spark_ui::link as spark_ui_of};
use sparkgate_service::{OpenSession, Session, SessionState};
use sparkgate_web::{
    id::{Id, not_found as no_such_submission},
    problem::Problem,
    session::Caller,
    state::AppState,
};

/// A session as a row of the page.
struct Row {
    open: OpenSession,
    /// Where clients connect, for those who may.
    connection_string: Option<String>,
    spark_ui: Option<String>,
    may_end: bool,
}

/// Shows the live sessions that the caller may see.
pub(super) async fn show(
    State(state): State<AppState>,
    Caller(caller): Caller,
    uri: Uri,
    Host(host): Host,
) -> Result<Response, Problem> {
    let is_served = state.service.connect.settings().listen.is_some();
    let sessions = state.service.connect.sessions(&caller, false).await?;
    let principals = sessions.iter().map(|open| open.session.submission.principal.as_str());
    let names = state.service.api_keys.names(principals).await.into();
    let rows: Vec<Row> = sessions.into_iter().map(|open| row_of(&state, &caller, open, host.as_deref())).collect();
    let content = html! {
        h1.hidden { "Sessions" }
        div #sessions data-live data-poll { (overview(&rows, &names, Utc::now())) }
        p.quiet {
            @if is_served {
                "A session is a Spark of your own that notebooks and programs connect to. Open one with " code { "sparkgate connect" }
                ", or with " code { "POST /v1/sessions" } "."
            } @else {
                "This gateway serves no sessions of Spark Connect: its operator has to set " code { "connect-listen" } "."
            }
        }
    };
    let frame =
        Frame { title: "Sessions", section: Section::Sessions, path: uri.path(), caller: Some(&caller), live: None };
    Ok(page(frame.around(&content)))
}

fn row_of(state: &AppState, caller: &Session, open: OpenSession, host: Option<&str>) -> Row {
    let submission = &open.session.submission;
    let settings = state.service.connect.settings();
    let connection_string = open.is_open_to(caller).then(|| settings.connection_string(host, &submission.id)).flatten();
    // From `/console/sessions`.
    let spark_ui =
        spark_ui_of(&state.service, submission).map(|ui| if ui.starts_with('/') { format!("..{ui}") } else { ui });
    let may_end = caller.killable().covers(&submission.tenant, &submission.principal);
    Row { open, connection_string, spark_ui, may_end }
}

fn overview(rows: &[Row], names: &Names, now: DateTime<Utc>) -> Markup {
    html! {
        section {
            h2 { "Sessions " span.count { (rows.len()) } }
            @if rows.is_empty() {
                p.quiet { "No session is open." }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Sessions" {
                    table.plain {
                        thead {
                            tr {
                                th scope="col" { "Session" } th scope="col" { "State" } th scope="col" { "Principal" }
                                th scope="col" { "Last use" } th scope="col" { "Ends" } th scope="col" { "Spark" } th scope="col" { "" }
                            }
                        }
                        tbody { @for row in rows { (shown(row, names, now)) } }
                    }
                }
            }
        }
    }
}

fn shown(row: &Row, names: &Names, now: DateTime<Utc>) -> Markup {
    let Row { open, connection_string, spark_ui, may_end } = row;
    let (session, submission) = (&open.session, &open.session.submission);
    let (class, state) = match open.state {
        SessionState::Opening => ("pending", "opening"),
        SessionState::Ready => ("running", "ready"),
        SessionState::Ended => ("killed", "ended"),
    };
    html! {
        tr {
            th scope="row" {
                a href={ "submissions/" (submission.id) } { (word(&session.name)) }
                @if let Some(text) = connection_string {
                    " " button.copy type="button" hidden data-copy=(text) title="Copy the connection string" { "Copy" }
                }
            }
            td.wide {
                span class={ "state " (class) } { (state) }
                @if let Some(message) = &open.message { p.quiet { (word(message)) } }
            }
            td {
                (names.show(&submission.principal))
                p.quiet { @if session.is_shared { "shared in " } "tenant " (word(&submission.tenant)) }
            }
            td { @if let Some(at) = session.used_at { (ago(at, now)) } @else { span.none { "–" } } }
            td { @if let Some(at) = open.idle_at() { "in " (duration(at - now)) p.quiet { "unless it is used" } } @else { span.none { "–" } } }
            td { (submission.spark_version) @if let Some(ui) = spark_ui { " " a href=(ui) target="_blank" rel="noopener noreferrer" { "Spark UI" } } }
            td {
                @if *may_end {
                    form method="post" action={ "sessions/" (submission.id) "/end" } data-confirm={ "End the session " (session.name) "?" } {
                        button { "End" }
                    }
                }
            }
        }
    }
}

/// Ends a session, and shows those that go on.
pub(super) async fn end(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
) -> Result<Response, Problem> {
    let answer = state.service.submissions.request_kill(&caller, &id).await?;
    answer.submission.ok_or_else(|| no_such_submission(&id))?;
    Ok(seen_at("../../sessions".to_owned()))
}
