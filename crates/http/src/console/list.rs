//! The list of submissions, and the kill of many.

use axum::{
    extract::{Extension, Request, State},
    http::Uri,
    response::Response,
};
use maud::{Markup, html};

use super::{
    filters, form,
    layout::{Frame, Live, Section, word},
    page::page,
    places,
    rows::{Parts, Read, Reads},
};
use sparkgate_service::{Error, KillAnswer, Session};
use sparkgate_submission::SubmissionId;
use sparkgate_web::{
    problem::{Code, Problem},
    session::Caller,
    state::AppState,
};

/// The most submissions that one form kills: a page of the list.
const MOST_KILLS: usize = 500;

/// Shows a page of the list. Its parameters are those of `GET /v1/submissions`.
pub(super) async fn show(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Extension(reads): Extension<Reads>,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = form::filled(uri.query().unwrap_or_default());
    let read = reads.read(&state, &caller, &query).await?;
    let content = content(&query, &read, &caller);
    let live = Some(Live { after: read.after, filter: event_filter(&query) });
    let frame =
        Frame { title: "Submissions", section: Section::Submissions, path: uri.path(), caller: Some(&caller), live };
    Ok(page(frame.around(&content)))
}

/// Returns the parameters that `/v1/events` has, too.
fn event_filter(query: &str) -> String {
    let parameters = form_urlencoded::parse(query.as_bytes());
    let shared = parameters.filter(|(name, _)| matches!(&**name, "owner" | "namespace" | "label"));
    form_urlencoded::Serializer::new(String::new()).extend_pairs(shared).finish()
}

fn content(query: &str, read: &Read, caller: &Session) -> Markup {
    let Parts { tabs, rows, empty, pages, has_tenants, has_queues } = read.parts(query, caller);
    let is_first = form::values(query, "cursor").is_empty();
    html! {
        h1.hidden { "Submissions" }
        search.filters {
            (tabs)
            (filters::fields(query, caller))
        }
        (filters::chips(query, read.names()))
        form #kill method="post" action="submissions/kill" data-confirm="Kill the selected submissions?" {
            input type="hidden" name="back" value=(form::with(query, &[]));
        }
        table.submissions #submissions data-first[is_first] aria-label="Submissions, the newest first" {
            thead {
                tr {
                    th.pick scope="col" { span.hidden { "Select" } }
                    th scope="col" { "State" }
                    th scope="col" { "Name" }
                    th.who scope="col" { "By" }
                    @if has_tenants { th.tenant scope="col" { "Tenant" } }
                    @if has_queues { th.queue scope="col" { "Queue" } }
                    th.age scope="col" { "Age" }
                    th.took scope="col" { "Duration" }
                    th.executors scope="col" { "Executors" }
                    th.code scope="col" { "Reason" }
                }
            }
            (rows)
        }
        (empty)
        footer.bar {
            button type="submit" form="kill" data-needs-selection { "Kill selected" }
            span.quiet data-selection {}
            (pages)
        }
        @if let Some(places) = places::section(query, caller) { (places) }
    }
}

/// What became of a kill.
enum Killed {
    Requested,
    Over,
    Refused(String),
}

/// Kills the submissions that a form names, and shows what became of each.
pub(super) async fn kill(
    State(state): State<AppState>,
    Caller(caller): Caller,
    request: Request,
) -> Result<Response, Problem> {
    let path = request.uri().path().to_owned();
    let (parts, body) = request.into_parts();
    let fields = form::read(&parts.headers, body).await?;
    let of = |wanted: &'static str| fields.iter().filter(move |(name, _)| name == wanted).map(|(_, value)| value);
    let ids: Vec<String> = of("id").cloned().collect();
    if ids.is_empty() {
        return Err(Problem::new(Code::InvalidRequest, "No submission is selected. Go back and select those to kill."));
    }
    if ids.len() > MOST_KILLS {
        let detail = format!("{} submissions are selected; a form may name {MOST_KILLS}.", ids.len());
        return Err(Problem::new(Code::InvalidRequest, detail));
    }
    let back = of("back").next().map(|query| form::with(query, &[])).unwrap_or_default();
    // The rest is killed even if the client disconnects.
    let known = ids.iter().filter_map(|id| id.parse().ok()).collect();
    let mut answers = state.service.submissions.request_kills(&caller, known).await?.into_iter();
    let kills: Vec<(String, Killed)> = ids
        .into_iter()
        .map(|id| {
            let answer = id.parse::<SubmissionId>().ok().and_then(|_| answers.next());
            (id, killed(answer))
        })
        .collect();
    let requested = kills.iter().filter(|(_, killed)| matches!(killed, Killed::Requested)).count();
    let content = html! {
        section.problem {
            h1 { "Kill requested for " (requested) " of " (kills.len()) }
            table.plain {
                tbody {
                    @for (id, killed) in &kills {
                        tr {
                            th scope="row" { a href={ "../submissions/" (id) } { (word(id)) } }
                            td {
                                @match killed {
                                    Killed::Requested => "will be ended",
                                    Killed::Over => "has already ended",
                                    Killed::Refused(why) => (word(why)),
                                }
                            }
                        }
                    }
                }
            }
            p.actions { a.button href={ "../submissions?" (back) } { "Back to the list" } }
        }
    };
    let frame = Frame { title: "Kill", section: Section::Submissions, path: &path, caller: Some(&caller), live: None };
    Ok(page(frame.around(&content)))
}

fn killed(answer: Option<Result<KillAnswer, Error>>) -> Killed {
    match answer {
        Some(Ok(answer)) if answer.live => Killed::Requested,
        Some(Ok(answer)) if answer.submission.is_some() => Killed::Over,
        Some(Ok(_)) | None => Killed::Refused("there is no such submission, or it is no longer kept".to_owned()),
        Some(Err(error)) => Killed::Refused(Problem::from(error).detail),
    }
}
