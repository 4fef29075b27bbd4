//! Where a submission stands in its queue, and holds of submissions.

use axum::{extract::State, response::Response};
use chrono::{DateTime, TimeDelta, Utc};
use maud::{Markup, html};

use super::{
    layout::{facts, word},
    page::seen_at,
    text::{ago, duration},
};
use sparkgate_service::{COUNTED_IN_LISTS, Held, HoldAnswer, Submission, WaitEstimate, Waiting};
use sparkgate_submission::{State as SubmissionState, SubmissionId};
use sparkgate_web::{
    id::{Id, not_found},
    problem::{Code, Problem},
    session::Caller,
    state::AppState,
};

/// Shows where a submission stands, on its page.
pub(super) fn section(waiting: &Waiting, now: DateTime<Utc>) -> Markup {
    let Waiting { queue, priority, held, ahead, reason, estimate } = waiting;
    let is_in_line = queue.is_some() && held.is_none();
    let place = is_in_line.then(|| match ahead {
        Some(0) => html! { "the next of its tenant" },
        Some(ahead) => html! { (ahead) " of its tenant are before it" },
        None => html! { "more than ten thousand of its tenant are before it" },
    });
    facts(&[
        ("Queue", queue.as_deref().map(word)),
        ("Priority", priority.map(|priority| html! { (priority) })),
        ("Place", place),
        ("Waits for", held.is_none().then(|| word(reason))),
        ("Held", held.as_ref().map(|held| hold_of(held, now))),
        ("Admitted", is_in_line.then(|| estimated(estimate.as_ref(), now))),
    ])
}

fn hold_of(held: &Held, now: DateTime<Utc>) -> Markup {
    html! { (ago(held.at, now)) " by " (word(&held.by)) @if let Some(reason) = &held.reason { ": " (word(reason)) } }
}

fn estimated(estimate: Option<&WaitEstimate>, now: DateTime<Utc>) -> Markup {
    let time = |seconds: f64| duration(TimeDelta::milliseconds((seconds.max(0.0) * 1000.0) as i64));
    html! {
        @if let Some(WaitEstimate { seconds, error_seconds, admissions, since }) = estimate {
            "in about " (time(*seconds)) " ± " (time(*error_seconds))
            p.quiet { "from " (admissions) " admissions of its tenant since " (ago(*since, now)) }
        } @else {
            span.quiet { "unknown: the queue is paused, or too little was admitted there in the last day" }
        }
    }
}

/// Shows where a submission stands, in a row of the list; `None` if no queue and no hold keeps it from being launched.
pub(super) fn in_list(of: &Submission, ahead: Option<u32>) -> Option<Markup> {
    if !matches!(of.state, SubmissionState::Queued | SubmissionState::Launching) {
        return None;
    }
    if let Some(held) = &of.held {
        let by = held.reason.as_ref().map_or_else(|| format!("by {}", held.by), |why| format!("by {}: {why}", held.by));
        return Some(html! { span title=(super::text::cut(&by, 500)) { "held" } });
    }
    let (queue, ahead) = (of.queue.as_deref()?, ahead?);
    let place = match ahead {
        0 => "next".to_owned(),
        ahead if ahead > COUNTED_IN_LISTS => format!("over {COUNTED_IN_LISTS} before it"),
        ahead => format!("{ahead} before it"),
    };
    let why = of.message.as_deref().unwrap_or("of its tenant in the queue");
    Some(html! { span title=(super::text::cut(why, 500)) { (place) " in " (word(queue)) } })
}

/// The button that holds a queued submission, or releases a held one. `up` leads from the page to the submissions.
pub(super) fn button(of: &Submission, up: &str) -> Markup {
    let (id, is_queued) = (of.id.as_str(), of.state == SubmissionState::Queued);
    let (action, name) = if of.held.is_some() { ("release", "Release") } else { ("hold", "Hold") };
    html! {
        @if is_queued { form method="post" action={ (up) (id) "/" (action) } { button { (name) } } }
    }
}

/// Holds a submission and shows it.
pub(super) async fn hold(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
) -> Result<Response, Problem> {
    shown(&id, &state.service.queues.hold(&caller, &id, None).await?)
}

/// Releases a submission and shows it.
pub(super) async fn release(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
) -> Result<Response, Problem> {
    shown(&id, &state.service.queues.release(&caller, &id).await?)
}

/// Leads to the page of the submission, which shows its state: it may have been launched meanwhile.
fn shown(id: &SubmissionId, answer: &HoldAnswer) -> Result<Response, Problem> {
    if answer.submission.is_none() {
        return Err(not_found(id));
    }
    if !answer.allowed {
        let detail = format!("The caller may not hold or release submission {id}.");
        return Err(Problem::new(Code::Denied, detail));
    }
    Ok(seen_at(format!("../{id}")))
}
