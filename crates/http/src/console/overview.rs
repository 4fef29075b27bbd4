//! The last day, week or month of the submissions that the caller may read.

use axum::{extract::State, http::Uri, response::Response};
use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use maud::{Markup, html};
use serde::{Deserialize, Deserializer, de::Error as _};

use super::{
    chart, form,
    layout::{Frame, Live, Section, word},
    page::page,
    text::{duration, took},
};
use sparkgate_service::{Period, QueueOverview, Recent, StateCount};
use sparkgate_submission::queues::Resource;
use sparkgate_web::{problem::Problem, query::read as read_query, session::Caller, state::AppState};

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct OverviewQuery {
    #[serde(deserialize_with = "period")]
    period: Period,
}

fn period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Period, D::Error> {
    let text = String::deserialize(deserializer)?;
    let found = Period::ALL.into_iter().find(|period| period.as_str() == text);
    found.ok_or_else(|| D::Error::custom(format!("{text:?} is none of 24h, 7d and 30d")))
}

/// Shows the overview.
pub(super) async fn show(State(state): State<AppState>, Caller(caller): Caller, uri: Uri) -> Result<Response, Problem> {
    let OverviewQuery { period } = read_query(&form::filled(uri.query().unwrap_or_default()))?;
    let after = state.service.events.newest().await?;
    let (recent, queues) =
        tokio::try_join!(state.service.overview.recent(&caller, period), state.service.queues.overview(&caller))?;
    let content = html! {
        h1.hidden { "Overview" }
        nav.groups aria-label="Period" {
            @for one in Period::ALL {
                a href={ "?period=" (one.as_str()) } aria-current=[(one == period).then_some("page")] { (in_words(one)) }
            }
        }
        div #recent data-live data-slow { (render(&recent, period, Utc::now())) (in_queues(&queues)) }
    };
    let live = Some(Live { after, filter: String::new() });
    let frame = Frame { title: "Overview", section: Section::Overview, path: uri.path(), caller: Some(&caller), live };
    Ok(page(frame.around(&content)))
}

fn in_words(period: Period) -> &'static str {
    match period {
        Period::Day => "24 hours",
        Period::Week => "7 days",
        Period::Month => "30 days",
    }
}

fn render(recent: &Recent, period: Period, now: DateTime<Utc>) -> Markup {
    let accepted: u64 = recent.accepted.iter().map(|part| part.count).sum();
    let (ended, finished) = recent.ends();
    let live: u64 = recent.live.iter().map(|state| state.count).sum();
    let oldest = recent.live.iter().filter_map(|state| state.oldest).max().filter(|seconds| *seconds > 0);
    let longest = recent.durations.map(|durations| format!("{} or less in nine of ten", took(durations.p90)));
    let median = recent.durations.map_or_else(|| "–".to_owned(), |durations| took(durations.median));
    html! {
        div.figures {
            (figure(&format!("Accepted in {}", in_words(period)), &accepted.to_string(), None))
            (figure("Ended", &ended.to_string(), success(ended, finished)))
            (figure("Took, in the median", &median, longest))
            (figure("Live", &live.to_string(), Some(states(&recent.live))))
            (figure("Oldest in the queue", &oldest.map_or_else(|| "–".to_owned(), seconds), None))
        }
        section {
            h2 { "Throughput" }
            (chart::throughput(&recent.accepted, &recent.ended, period))
        }
        div.columns {
            (failures(recent, period, now))
            (slowest(recent, period))
            (owners(recent, period))
        }
    }
}

fn failures(recent: &Recent, period: Period, now: DateTime<Utc>) -> Markup {
    let failures = recent.failures();
    let most = failures.first().map_or(1, |(_, count)| *count);
    let since = now - TimeDelta::hours(period.hours().into());
    let those = |code: &str| {
        let since = since.to_rfc3339_opts(SecondsFormat::Secs, true);
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("failureCode", code).append_pair("createdAfter", &since).finish()
    };
    html! {
        section {
            h2 { "Why they didn't finish" }
            @if failures.is_empty() { p.quiet { "All that ended in the last " (in_words(period)) " finished." } }
            table.plain.bars {
                tbody {
                    @for (code, count) in &failures {
                        tr {
                            th scope="row" { a href={ "submissions?" (those(code.as_str())) } { code { (code.as_str()) } } }
                            td.bar { svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" { rect class="failed" x="0" y="0" width=(100 * count / most) height="8" {} } }
                            td.number { (count) }
                        }
                    }
                }
            }
        }
    }
}

fn slowest(recent: &Recent, period: Period) -> Markup {
    html! {
        section {
            h2 { "Slowest starts" }
            @if recent.slowest.is_empty() { p.quiet { "None started in the last " (in_words(period)) "." } }
            table.plain {
                tbody {
                    @for start in &recent.slowest {
                        tr {
                            th scope="row" { a href={ "submissions/" (start.id) } { (word(&start.name)) } }
                            td { (word(&start.owner)) }
                            td.number { (seconds(start.seconds)) }
                        }
                    }
                }
            }
        }
    }
}

fn owners(recent: &Recent, period: Period) -> Markup {
    html! {
        section {
            h2 { "Top users" }
            @if recent.owners.is_empty() { p.quiet { "Nothing was accepted in the last " (in_words(period)) "." } }
            table.plain {
                thead { tr { th scope="col" { "Owner" } th.number scope="col" { "Accepted" } th.number scope="col" { "Failed" } } }
                tbody {
                    @for owner in &recent.owners {
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

/// Shows how many run and wait in each queue.
fn in_queues(queues: &[QueueOverview]) -> Markup {
    if queues.is_empty() {
        return html! {};
    }
    let those = |queue: &str, state: &str| {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("queue", queue).append_pair("state", state).finish()
    };
    html! {
        section {
            h2 { a href="queues" { "Queues" } }
            table.plain {
                thead { tr { th scope="col" { "Queue" } th.number scope="col" { "Running" } th.number scope="col" { "Waiting" } th.number scope="col" { "Held" } } }
                tbody {
                    @for queue in queues {
                        tr {
                            th scope="row" { a href={ "submissions?" (those(&queue.name, "QUEUED")) } { (word(&queue.name)) } }
                            td.number { (queue.running.amount(&Resource::Submissions)) }
                            td.number { (queue.waiting) }
                            td.number { (queue.held) }
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
