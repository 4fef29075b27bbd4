//! The queues: what runs and waits in them, and what they lend each other.

use axum::{
    extract::{Request, State},
    http::Uri,
    response::Response,
};
use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::{
    form,
    layout::{Frame, Section, word},
    page::{page, seen_at},
    text::ago,
};
use crate::queue_state::{REASON, reason, state_of};
use sparkgate_service::{QueueOverview, QueueState, Queues, TenantInQueue};
use sparkgate_submission::queues::Amounts;
use sparkgate_web::{
    problem::{Code, Problem},
    session::Caller,
    state::AppState,
};

/// Shows the queues that tenants of the caller may use.
pub(super) async fn show(State(state): State<AppState>, Caller(caller): Caller, uri: Uri) -> Result<Response, Problem> {
    let queues = state.service.queues.overview(&caller).await?;
    let content = html! {
        h1.hidden { "Queues" }
        div #queues data-live data-poll { (overview(&queues, Utc::now())) }
        @if Queues::may_change(&caller) && !queues.is_empty() { (change(&queues)) }
    };
    let frame =
        Frame { title: "Queues", section: Section::Queues, path: uri.path(), caller: Some(&caller), live: None };
    Ok(page(frame.around(&content)))
}

fn overview(queues: &[QueueOverview], now: DateTime<Utc>) -> Markup {
    html! {
        section {
            h2 { "Queues " span.count { (queues.len()) } }
            @if queues.is_empty() {
                p.quiet { "Your tenants have no queues: submissions are launched as they come." }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Queues" {
                    table.plain.queues {
                        thead {
                            tr {
                                th scope="col" { "Queue" } th scope="col" { "State" } th.number scope="col" { "Weight" }
                                th.number scope="col" { "Fair share" } th.number scope="col" { "Uses" }
                                th scope="col" { "Lends and borrows" } th scope="col" { "Runs" }
                                th.number scope="col" { "Waiting" } th.number scope="col" { "Held" }
                            }
                        }
                        tbody {
                            @for queue in queues {
                                (row(queue, now))
                                @for (tenant, has) in &queue.tenants { (tenant_row(tenant, has, &queue.name)) }
                            }
                        }
                    }
                }
                p.quiet {
                    "Shares are parts of the capacity, of the resource of which a queue uses the most. Without a stated capacity, they are \
                     parts of all that runs. A queue that uses less than its fair share lends the rest, which comes back as submissions end."
                }
            }
        }
    }
}

fn row(queue: &QueueOverview, now: DateTime<Utc>) -> Markup {
    let (class, state) = match queue.state.as_ref().map(|stored| stored.state) {
        None => ("finished", "open"),
        Some(QueueState::Paused) => ("failed", "paused"),
        Some(QueueState::Draining) => ("pending", "draining"),
    };
    html! {
        tr {
            th scope="row" { (word(&queue.name)) }
            td {
                span class={ "state " (class) } { (state) }
                @if let Some(stored) = &queue.state {
                    p.quiet { (ago(stored.changed_at, now)) " by " (word(&stored.changed_by)) }
                    @if let Some(reason) = &stored.reason { p { (word(reason)) } }
                }
            }
            td.number { (queue.weight) }
            td.number { (percent(queue.fair_share)) }
            td.number { (percent(queue.used_share)) }
            td {
                @for (lender, part) in &queue.borrowed {
                    p { "borrows " (percent(*part)) " from " @if let Some(lender) = lender { (word(lender)) } @else { "others" } }
                }
                @if queue.lent > 0.0 { p { "lends " (percent(queue.lent)) } }
                @if queue.borrowed.is_empty() && queue.lent <= 0.0 { span.none { "–" } }
            }
            td { (used(&queue.running, &queue.caps)) }
            td.number { (waiting(queue.waiting, &queue.name, None)) }
            td.number { (queue.held) }
        }
    }
}

/// Shows how many submissions wait, with a link to them. Waiting ones of other tenants aren't in the list.
fn waiting(count: u64, queue: &str, tenant: Option<&str>) -> Markup {
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("state", "QUEUED")
        .append_pair("queue", queue)
        .extend_pairs(tenant.map(|tenant| ("tenant", tenant)))
        .finish();
    html! { @if count > 0 { a href={ "submissions?" (query) } { (count) } } @else { (count) } }
}

/// Shows a tenant in a queue.
fn tenant_row(tenant: &str, has: &TenantInQueue, queue: &str) -> Markup {
    html! {
        tr.part {
            th scope="row" { "tenant " (word(tenant)) }
            td colspan="5" {}
            td { (used(&has.running, &Amounts::default())) }
            td.number { (waiting(has.waiting, queue, Some(tenant))) }
            td.number { (has.held) }
        }
    }
}

/// Lists what is used of each resource, and the cap on it.
fn used(running: &Amounts, caps: &Amounts) -> Markup {
    let mut all = caps.clone();
    all.add(running);
    html! {
        @if all.is_empty() { span.none { "–" } }
        @for (resource, _) in all.iter() {
            p {
                (resource.written(running.amount(resource)))
                @if let Some(cap) = caps.get(resource) { " of " (resource.written(cap)) }
                " " (word(&resource.to_string()))
            }
        }
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// The form that changes the state of a queue.
fn change(queues: &[QueueOverview]) -> Markup {
    html! {
        section {
            h2 { "Change a queue" }
            p.quiet {
                "A paused queue admits nothing, and accepts submissions. A draining queue accepts nothing, and admits what waits. What runs \
                 goes on. The state outlives restarts, and changes of the access file."
            }
            form.line method="post" action="queues/state" {
                select name="queue" aria-label="Queue" { @for queue in queues { option value=(queue.name) { (word(&queue.name)) } } }
                input name="reason" maxlength=(REASON) placeholder="Why, for people" aria-label="Reason";
                button name="state" value="paused" { "Pause" }
                button name="state" value="draining" { "Drain" }
                button name="state" value="open" { "Open" }
            }
        }
    }
}

/// Changes the state of a queue as a form says, and shows the queues.
pub(super) async fn set_state(
    State(state): State<AppState>,
    Caller(caller): Caller,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let fields = form::read(&parts.headers, body).await?;
    let value = |wanted| form::field(&fields, wanted);
    let invalid = |detail: String| Problem::new(Code::InvalidRequest, detail);
    let wanted = state_of(value("state")).map_err(|why| invalid(format!("The state {why}.")))?;
    let reason = reason(Some(value("reason"))).map_err(|why| invalid(format!("The reason {why}.")))?;
    state.service.queues.set_state(&caller, value("queue"), wanted, reason).await?;
    Ok(seen_at("../queues".to_owned()))
}
