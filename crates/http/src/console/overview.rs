//! The last 24 hours of the submissions that the caller may read.

use axum::{extract::State, http::Uri, response::Response};
use chrono::TimeDelta;
use maud::{Markup, html};

use super::{
    chart,
    layout::{Frame, Live, Section, word},
    page::page,
    text::duration,
};
use sparkgate_service::{Day, StateCount};
use sparkgate_web::{problem::Problem, session::Caller, state::AppState};

/// Shows the overview.
pub(super) async fn show(State(state): State<AppState>, Caller(caller): Caller, uri: Uri) -> Result<Response, Problem> {
    let after = state.service.events.newest().await?;
    let day = state.service.overview.day(&caller).await?;
    let content = html! {
        h1.hidden { "Overview" }
        div #day data-live data-slow { (render_day(&day)) }
    };
    let live = Some(Live { after, filter: String::new() });
    let frame = Frame { title: "Overview", section: Section::Overview, path: uri.path(), caller: Some(&caller), live };
    Ok(page(frame.around(&content)))
}

fn render_day(day: &Day) -> Markup {
    let accepted: u64 = day.accepted.iter().map(|hour| hour.count).sum();
    let (ended, finished) = day.ends();
    let failures = day.failures();
    let live: u64 = day.live.iter().map(|state| state.count).sum();
    let oldest = day.live.iter().filter_map(|state| state.oldest).max().filter(|seconds| *seconds > 0);
    let most = failures.first().map_or(1, |(_, count)| *count);
    html! {
        div.figures {
            (figure("Accepted in 24 h", &accepted.to_string(), None))
            (figure("Ended", &ended.to_string(), success(ended, finished)))
            (figure("Live", &live.to_string(), Some(states(&day.live))))
            (figure("Oldest in the queue", &oldest.map_or_else(|| "–".to_owned(), seconds), None))
        }
        section {
            h2 { "Throughput" }
            (chart::hours(&day.accepted, &day.ended))
        }
        div.columns {
            section {
                h2 { "Why they didn't finish" }
                @if failures.is_empty() { p.quiet { "All that ended in the last 24 hours finished." } }
                table.plain.bars {
                    tbody {
                        @for (code, count) in &failures {
                            tr {
                                th scope="row" { code { (code.as_str()) } }
                                td.bar { svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" { rect class="failed" x="0" y="0" width=(100 * count / most) height="8" {} } }
                                td.number { (count) }
                            }
                        }
                    }
                }
            }
            section {
                h2 { "Slowest starts" }
                @if day.slowest.is_empty() { p.quiet { "None started in the last 24 hours." } }
                table.plain {
                    tbody {
                        @for start in &day.slowest {
                            tr {
                                th scope="row" { a href={ "submissions/" (start.id) } { (word(&start.name)) } }
                                td { (word(&start.owner)) }
                                td.number { (seconds(start.seconds)) }
                            }
                        }
                    }
                }
            }
            section {
                h2 { "Top users" }
                @if day.owners.is_empty() { p.quiet { "Nothing was accepted in the last 24 hours." } }
                table.plain {
                    thead { tr { th scope="col" { "Owner" } th.number scope="col" { "Accepted" } th.number scope="col" { "Failed" } } }
                    tbody {
                        @for owner in &day.owners {
                            @let query = form_urlencoded::Serializer::new(String::new()).append_pair("owner", &owner.owner).finish();
                            tr {
                                th scope="row" { a href={ "submissions?" (query) } { (word(&owner.owner)) } }
                                td.number { (owner.accepted) }
                                td.number { (owner.failed) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn figure(name: &str, value: &str, detail: Option<String>) -> Markup {
    html! {
        div.figure {
            p.name { (name) }
            p.value { (value) }
            @if let Some(detail) = detail { p.quiet { (detail) } }
        }
    }
}

fn success(ended: u64, finished: u64) -> Option<String> {
    (ended > 0).then(|| format!("{:.1} % finished", 100.0 * finished as f64 / ended as f64))
}

fn states(live: &[StateCount]) -> String {
    let states: Vec<String> =
        live.iter().map(|state| format!("{} {}", state.count, state.state.to_lowercase())).collect();
    states.join(", ")
}

fn seconds(seconds: u64) -> String {
    if seconds < 10 {
        return format!("{seconds}s");
    }
    duration(TimeDelta::seconds(i64::try_from(seconds).unwrap_or(i64::MAX / 1000)))
}
