//! Pictures of submissions as SVG. Each has its content in words, too.

use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use super::text::{duration, took};
use sparkgate_service::{Event, ExecutorCounts, JobRun, PartCount, Period, StartupStep};
use sparkgate_submission::{ExecutorRecord, State};

/// The width of wide pictures in units of their own; pages stretch them.
const WIDTH: f64 = 1000.0;

/// Shows how many executors of each state there are.
pub(super) fn executor_bar(counts: &ExecutorCounts) -> Markup {
    let ExecutorCounts { pending, running, succeeded, failed, deleted } = *counts;
    let parts = [
        ("pending", pending),
        ("running", running),
        ("succeeded", succeeded),
        ("failed", failed),
        ("deleted", deleted),
    ];
    let total: i32 = parts.iter().map(|(_, count)| count).sum();
    if total == 0 {
        return html! { span.none { "–" } };
    }
    let words: Vec<String> =
        parts.iter().filter(|(_, count)| *count > 0).map(|(state, count)| format!("{count} {state}")).collect();
    let words = words.join(", ");
    let width = |count: i32| 60.0 * f64::from(count) / f64::from(total);
    let before = |at: usize| parts.iter().take(at).map(|(_, count)| width(*count)).sum();
    html! {
        span.executors title={ "Executors: " (words) } {
            svg viewBox="0 0 60 8" preserveAspectRatio="none" aria-hidden="true" {
                @for (at, (state, count)) in parts.into_iter().enumerate() {
                    @if count > 0 { rect class=(state) x=(number(before(at))) y="0" width=(number(width(count))) height="8" {} }
                }
            }
            // Of those that are over, only the number is of interest.
            span { @if running + pending > 0 { (running) span.of { "/" (total) } } @else { span.of { (total) } } }
            span.hidden { " executors: " (words) }
        }
    }
}

/// A state of an attempt, and for how long it lasted.
struct Segment {
    attempt: i32,
    state: State,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
}

/// Shows the states of all attempts over time.
pub(super) fn timeline(events: &[Event], now: DateTime<Utc>) -> Markup {
    let segments = segments(events, now);
    let (Some(first), Some(last)) = (segments.first(), segments.iter().map(|segment| segment.to).max()) else {
        return html! {};
    };
    let scale = Scale::new(first.from, last);
    let mut attempts: Vec<i32> = segments.iter().map(|segment| segment.attempt).collect();
    attempts.dedup();
    let of = |attempt: i32| segments.iter().filter(move |segment| segment.attempt == attempt);
    html! {
        @for attempt in &attempts {
            figure.timeline {
                @if attempts.len() > 1 { figcaption { "Attempt " (attempt) } }
                svg viewBox={ "0 0 " (WIDTH) " 20" } preserveAspectRatio="none" aria-hidden="true" {
                    rect class="ground" x="0" y="0" width=(WIDTH) height="20" {}
                    @for segment in of(*attempt) {
                        // A state that lasted only a moment is seen, too.
                        @let width = scale.width(segment.from, segment.to).max(2.0);
                        rect class=(segment.state.as_str().to_lowercase()) x=(number(scale.x(segment.from)))
                            y="0" width=(number(width)) height="20" {
                            title { (segment.state.as_str()) " " (duration(segment.to - segment.from)) }
                        }
                    }
                }
                ol.legend {
                    @for segment in of(*attempt) {
                        li class={ "state " (segment.state.as_str().to_lowercase()) } {
                            (segment.state.as_str()) " " span.amount { (duration(segment.to - segment.from)) }
                        }
                    }
                }
            }
        }
    }
}

fn segments(events: &[Event], now: DateTime<Utc>) -> Vec<Segment> {
    let ends = events.iter().skip(1).map(|next| next.at).chain([now]);
    let segment = |(event, end): (&Event, DateTime<Utc>)| {
        let state: State = event.state.parse().ok().filter(|state: &State| !state.is_terminal())?;
        Some(Segment { attempt: event.attempt, state, from: event.at, to: end.max(event.at) })
    };
    events.iter().zip(ends).filter_map(segment).collect()
}

/// Shows how long each step of a start took.
pub(super) fn waterfall(steps: &[(StartupStep, DateTime<Utc>)]) -> Markup {
    let [(_, first), rest @ ..] = steps else { return html! {} };
    let Some((_, last)) = rest.last() else { return html! {} };
    let scale = Scale::new(*first, *last);
    let starts = steps.iter().map(|(_, at)| at);
    html! {
        table.plain.waterfall {
            thead { tr { th scope="col" { "Step" } th scope="col" { "Took" } th { span.hidden { "When" } } } }
            tbody {
                @for ((step, to), from) in rest.iter().zip(starts) {
                    tr {
                        th scope="row" { (in_words(*step)) }
                        td.number { (duration(*to - *from)) }
                        td.when {
                            svg viewBox={ "0 0 " (WIDTH) " 10" } preserveAspectRatio="none" aria-hidden="true" {
                                rect class="ground" x="0" y="0" width=(WIDTH) height="10" {}
                                rect class="running" x=(number(scale.x(*from))) y="0"
                                    width=(number(scale.width(*from, *to).max(2.0))) height="10" {}
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns what the time before a step was spent on.
pub(super) fn in_words(step: StartupStep) -> &'static str {
    match step {
        StartupStep::Queued => "Accepted",
        StartupStep::Admitted => "Waiting in its queue",
        StartupStep::Created => "Pausing before a retry, creating its objects",
        StartupStep::Scheduled => "Finding a node",
        StartupStep::Started => "Pulling the image, mounting, starting the container",
        StartupStep::ExecutorRequested => "Starting Spark",
        StartupStep::ExecutorStarted => "Starting the first executor",
        StartupStep::FirstJob => "Until the first job",
    }
}

/// Shows how many executors ran at each time.
pub(super) fn executors(executors: &[ExecutorRecord], from: DateTime<Utc>, to: DateTime<Utc>) -> Markup {
    let starts = executors.iter().filter_map(|one| Some((one.started_at?, 1)));
    let ends = executors.iter().filter(|one| one.started_at.is_some()).filter_map(|one| Some((one.finished_at?, -1)));
    let mut changes: Vec<(DateTime<Utc>, i32)> = starts.chain(ends).collect();
    // An executor that ends at the moment at which another starts makes no peak.
    changes.sort_unstable();
    let (mut count, mut steps) = (0, Vec::with_capacity(changes.len()));
    for (at, change) in changes {
        count += change;
        steps.push((at, count));
    }
    let most = steps.iter().map(|(_, count)| *count).max().unwrap_or(0);
    if most == 0 {
        return html! {};
    }
    let scale = Scale::new(from, to.max(from));
    let y = |count: i32| number(60.0 - 58.0 * f64::from(count) / f64::from(most));
    let mut path = "M0 60".to_owned();
    for (at, count) in &steps {
        let x = number(scale.x(*at));
        path.push_str(&format!("H{x}V{}", y(*count)));
    }
    path.push_str(&format!("H{}V60Z", number(scale.x(to))));
    html! {
        figure.chart {
            svg viewBox={ "0 0 " (WIDTH) " 60" } preserveAspectRatio="none" role="img"
                aria-label={ "Running executors over time, " (most) " at most, " (count) " at the end" } {
                path class="running" d=(path) {}
            }
            figcaption { span { "0" } span { (most) " running at most" } span { (duration(to - from)) } }
        }
    }
}

/// Shows how long each run took, the newest on the right.
pub(super) fn durations(runs: &[JobRun]) -> Markup {
    let most = runs.iter().filter_map(JobRun::seconds).fold(0.0, f64::max);
    if most <= 0.0 {
        return html! {};
    }
    let width = WIDTH / runs.len().max(20) as f64;
    html! {
        figure.chart {
            svg viewBox={ "0 0 " (WIDTH) " 60" } preserveAspectRatio="none" role="img"
                aria-label={ "Durations of the last runs, " (took(most)) " at most" } {
                @for (place, run) in runs.iter().enumerate() {
                    @if let Some(seconds) = run.seconds() {
                        @let height = (58.0 * seconds / most).max(1.0);
                        rect class=(run.state.as_str().to_lowercase()) x=(number(WIDTH - width * (place as f64 + 0.9))) y=(number(60.0 - height))
                            width=(number(width * 0.8)) height=(number(height)) {
                            title { (run.state.as_str()) " after " (took(seconds)) }
                        }
                    }
                }
            }
            figcaption { span { "earlier" } span { (took(most)) " at most" } span { "now" } }
        }
    }
}

/// Shows two numbers of each part of a period.
pub(super) fn throughput(accepted: &[PartCount], ended: &[PartCount], period: Period) -> Markup {
    let of = |counts: &[PartCount], parts_ago: u32| {
        counts.iter().find(|part| part.parts_ago == parts_ago).map_or(0, |part| part.count)
    };
    let (length, count) = period.parts();
    let most = accepted.iter().chain(ended).map(|part| part.count).max().unwrap_or(0).max(1);
    let width = WIDTH / f64::from(count);
    let bar = |class: &'static str, count: u64, x: f64| {
        let height = 100.0 * count as f64 / most as f64;
        html! {
            rect class=(class) x=(number(x)) y=(number(100.0 - height)) width=(number(width * 0.38)) height=(number(height)) {}
        }
    };
    let unit = match length {
        1 => "an hour".to_owned(),
        24 => "a day".to_owned(),
        hours => format!("in {hours} hours"),
    };
    let ago = |hours: u32| if hours > 48 { format!("{} d ago", hours / 24) } else { format!("{hours} h ago") };
    html! {
        figure.chart.hours {
            p.axis { span { (most) " " (unit) } span.key { span.accepted { "accepted" } " " span.ended { "ended" } } }
            svg viewBox={ "0 0 " (WIDTH) " 100" } preserveAspectRatio="none" role="img"
                aria-label={ "Submissions accepted and ended, " (most) " " (unit) " at most" } {
                @for parts_ago in (0..count).rev() {
                    @let (came, went) = (of(accepted, parts_ago), of(ended, parts_ago));
                    @let x = WIDTH - width * (f64::from(parts_ago) + 1.0);
                    g {
                        title { (ago(parts_ago * length)) ": " (came) " accepted, " (went) " ended" }
                        rect class="ground" x=(number(x)) y="0" width=(number(width)) height="100" {}
                        (bar("accepted", came, x + width * 0.1))
                        (bar("ended", went, x + width * 0.5))
                    }
                }
            }
            figcaption {
                span { (ago(period.hours())) } span { (ago(period.hours() / 2)) } span { "now" }
            }
        }
    }
}

struct Scale {
    from: DateTime<Utc>,
    millis: f64,
}

impl Scale {
    fn new(from: DateTime<Utc>, to: DateTime<Utc>) -> Self {
        Self { from, millis: ((to - from).num_milliseconds() as f64).max(1.0) }
    }

    fn x(&self, at: DateTime<Utc>) -> f64 {
        self.length(at - self.from)
    }

    fn width(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> f64 {
        self.length(to - from)
    }

    fn length(&self, time: TimeDelta) -> f64 {
        (time.num_milliseconds() as f64 / self.millis).clamp(0.0, 1.0) * WIDTH
    }
}

fn number(number: f64) -> String {
    format!("{number:.1}")
}
