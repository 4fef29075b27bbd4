//! The log of a driver or of an executor. The page has its end; `log.js` follows it.

use axum::{extract::State, http::Uri, response::Response};
use futures::StreamExt;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    form,
    heading::{Actions, heading},
    layout::{Frame, Live, Section},
    page::page,
    text::{cut, without_colours},
};
use crate::v1::logs::{executor, no_log};
use sparkgate_service::{Log, LogRequest, LogSource, LogStream};
use sparkgate_web::{
    id::{Id, find},
    problem::Problem,
    query::{attempt, flag, read as read_query},
    session::Caller,
    state::AppState,
};

/// How much of the end of a log the page has.
const LINES: u64 = 300;
/// How many lines of the end `log.js` begins with.
const FOLLOWED: u64 = 2000;
/// How many are searched for what the application itself wrote, here and there.
const OF_ALL_LINES: u64 = 20_000;
const BYTES: usize = 48 << 10;
/// The longest line that the page shows, in bytes.
const LINE: usize = 4000;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LogQuery {
    #[serde(deserialize_with = "attempt")]
    attempt: Option<i32>,
    #[serde(deserialize_with = "executor")]
    executor: Option<i64>,
    #[serde(rename = "ownOutput", deserialize_with = "flag")]
    own_output: bool,
}

/// Shows a log.
pub(super) async fn show(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = form::filled(uri.query().unwrap_or_default());
    let LogQuery { attempt, executor, own_output } = read_query(&query)?;
    let after = state.service.events.newest().await?;
    let of = find(&state.service, &caller, &id).await?;
    let (tail, followed) = if own_output { (OF_ALL_LINES, OF_ALL_LINES) } else { (LINES, FOLLOWED) };
    let request = LogRequest { attempt, executor, own_output, tail: Some(tail), ..LogRequest::default() };
    let other = form::with(&query, &[("ownOutput", if own_output { "" } else { "true" })]);
    let end = match state.service.logs.log(&caller, &id, &request).await {
        Ok(Log::Stream(log)) => Ok(last(log).await),
        Ok(Log::None(why)) => Err(no_log(&id, &request, why).detail),
        // The rest of the page is of use without the log, which may be there in a moment.
        Err(error) => Err(Problem::from(error).detail),
    };
    let source = format!("../../../v1/submissions/{id}/logs");
    let download = format!("{source}?{query}");
    let whose = executor.map_or_else(|| "Driver".to_owned(), |executor| format!("Executor {executor}"));
    let content = html! {
        (heading(&of, id.as_str(), "logs", Actions::of(&caller, &of)))
        section.log {
            form.logbar method="get" role="search" {
                label { "Attempt " input type="number" name="attempt" min="1" max=(of.attempt) value=[attempt] placeholder=(of.attempt); }
                label { "Executor " input type="number" name="executor" min="0" value=[executor] placeholder="driver"; }
                @if own_output { input type="hidden" name="ownOutput" value="true"; }
                button { "Show" }
                a.button href={ "?" (other) } { @if own_output { "All lines" } @else { "Only my output" } }
                span.spacer {}
                input type="search" hidden placeholder="Search this log" aria-label="Search this log" data-filter data-search;
                span.quiet data-found role="status" {}
                label hidden data-option="times" { input type="checkbox"; " times" }
                label hidden data-option="wrap" { input type="checkbox" checked; " wrap" }
                label hidden data-option="follow" { input type="checkbox" checked; " follow" }
                a.button href=(download) download={ (id) ".log" } { "Download" }
            }
            p.quiet #log-state role="status" {
                (whose) @if let Some(attempt) = attempt { " of attempt " (attempt) } ". "
                @match &end {
                    Ok(End { source: LogSource::Kept, .. }) => "The pod is gone: this is the end of its log that was kept.",
                    Ok(End { source: LogSource::Store | LogSource::Collector, .. }) => { "The last " (tail) " lines. The log is stored: the pod may be gone." },
                    Ok(_) => { "The last " (tail) " lines." },
                    Err(why) => (why),
                }
            }
            pre.log.wrap #log tabindex="0" role="region" aria-label="Log" data-source=(source) data-query=(query) data-tail=(followed) {
                @if let Ok(end) = &end { (lines(end)) }
            }
        }
    };
    let title = format!("Log of {}", of.name);
    let live = (!of.state.is_terminal()).then(|| Live {
        after,
        filter: form_urlencoded::Serializer::new(String::new()).append_pair("submission", id.as_str()).finish(),
    });
    let frame = Frame { title: &title, section: Section::Submissions, path: uri.path(), caller: Some(&caller), live };
    Ok(page(frame.around(&content)))
}

/// The end of a log.
struct End {
    source: LogSource,
    bytes: Vec<u8>,
    is_whole: bool,
}

async fn last(mut log: LogStream) -> End {
    let (mut bytes, mut is_whole) = (Vec::new(), true);
    while let Some(part) = log.bytes.next().await {
        match part {
            Ok(part) => bytes.extend_from_slice(&part),
            Err(_) => is_whole = false,
        }
        // Only the last bytes are shown, however long the lines are.
        if bytes.len() > 2 * BYTES {
            bytes.drain(..bytes.len() - BYTES);
        }
    }
    bytes.drain(..bytes.len().saturating_sub(BYTES));
    End { source: log.source, bytes, is_whole }
}

fn lines(end: &End) -> Markup {
    let text = String::from_utf8_lossy(&end.bytes);
    html! {
        @for line in text.lines() { (cut(&without_colours(line), LINE)) "\n" }
        @if !end.is_whole { "… The rest can't be read at the moment.\n" }
    }
}
