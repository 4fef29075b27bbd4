//! One submission: its state, why it waits or failed, and all that is known of its run.

use axum::{extract::State, http::Uri, response::Response};
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use serde_json::Value;

use super::{
    chart, copy,
    heading::{Actions, heading},
    layout::{Frame, Live, Section, badge, facts, word},
    page::page,
    reason::reason,
    spark,
    text::{ago, amount, cut, lasted, moment, took},
    waiting,
};
use crate::{
    host::Host,
    v1::{
        spark_ui::link as spark_ui_of,
        submissions::{rerun::RERUN_OF, steps_of_start},
    },
};
use sparkgate_access::Action;
use sparkgate_service::{
    AttemptRecord, AuditEntry, AuditFilter, Document, Event, FailureReason, Lateness, Session, StartupStep, Submission,
    SubmissionUsage, Summary, UsageOf, Waiting,
};
use sparkgate_submission::{ExecutorRecord, SubmissionId};
use sparkgate_web::{
    id::{Id, document, not_found as no_such_submission},
    problem::Problem,
    session::Caller,
    state::AppState,
};

/// The most rows that the page shows of each kind.
const EVENTS: u32 = 500;
const EXECUTORS: u32 = 1000;
const SHOWN_EXECUTORS: usize = 100;
const AUDIT: u32 = 50;

/// All that the page shows.
struct Details {
    submission: Submission,
    why: Option<FailureReason>,
    waiting: Option<Waiting>,
    events: Vec<Event>,
    attempts: Vec<AttemptRecord>,
    executors: Vec<ExecutorRecord>,
    usage: Option<SubmissionUsage>,
    currency: Option<String>,
    audit: Vec<AuditEntry>,
    request: Option<Value>,
    /// The gateway's host, as the browser named it.
    host: Option<String>,
    spark_ui: Option<String>,
    spark: Option<Summary>,
    steps: Vec<(StartupStep, DateTime<Utc>)>,
    launch_changes: Option<Value>,
    late: Option<Lateness>,
    actions: Actions,
}

/// Shows a submission.
pub(super) async fn show(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    uri: Uri,
    Host(host): Host,
) -> Result<Response, Problem> {
    let after = state.service.events.newest().await?;
    let mut details = Box::pin(read(&state, &caller, &id)).await?;
    details.host = host;
    let content = content(&details, Utc::now());
    let filter = form_urlencoded::Serializer::new(String::new()).append_pair("submission", id.as_str()).finish();
    let live = (!details.submission.state.is_terminal()).then_some(Live { after, filter });
    let title = format!("{} {}", details.submission.state, details.submission.name);
    let frame = Frame { title: &title, section: Section::Submissions, path: uri.path(), caller: Some(&caller), live };
    Ok(page(frame.around(&content)))
}

async fn read(state: &AppState, caller: &Session, id: &SubmissionId) -> Result<Details, Problem> {
    let service = &state.service;
    let Document { submission, why, usage, spark, waiting, startup, launch_changes, late } =
        document(service, caller, id).await?;
    let spark = spark.and_then(Summary::stored);
    let may_audit = caller.require(Action::ReadAudit).is_ok();
    let filter = AuditFilter { submission: Some(id.to_string()), tenant: None };
    let audit = async {
        match may_audit {
            true => service.audit.entries(caller, &filter, 0, AUDIT).await,
            false => Ok(Vec::new()),
        }
    };
    let (events, attempts, executors, audit, request) = tokio::try_join!(
        service.events.submission_events(caller, id, 0, EVENTS),
        service.submissions.attempts(caller, id),
        service.submissions.executors(caller, id, None, EXECUTORS),
        audit,
        service.submissions.request(caller, id),
    )?;
    Ok(Details {
        actions: Actions::of(caller, &submission),
        events: events.ok_or_else(|| no_such_submission(id))?.items,
        usage: usage.filter(|usage| !usage.attempts.is_empty()),
        spark_ui: spark_ui_of(service, &submission),
        steps: steps_of_start(&submission, &startup, spark.as_ref()),
        spark,
        launch_changes,
        late,
        currency: service.usage.currency().map(str::to_owned),
        submission,
        why,
        waiting,
        attempts,
        executors,
        audit,
        request,
        host: None,
    })
}

fn content(details: &Details, now: DateTime<Utc>) -> Markup {
    let Details { submission: of, why, waiting, events, executors, .. } = details;
    let id = of.id.as_str();
    let is_over = of.state.is_terminal();
    let end = of.finished_at.unwrap_or(now);
    html! {
        (heading(of, id, "", details.actions))
        div #state data-live {
            @if let Some(why) = why { (reason(why, is_over, id, now)) }
            @if let Some(late) = details.late.as_ref().filter(|_| !is_over) {
                p.quiet { "Late: " (took(late.seconds.into())) " were expected"
                    @if let Some(runs) = late.runs { ", the median of the last " (runs) " runs of its name" } "." }
            }
            @if let Some(waiting) = waiting {
                // Its place changes without an event.
                section data-poll { h2 { "Queue" } (waiting::section(waiting, now)) }
            }
            section {
                h2 { "Timeline" }
                (chart::timeline(events, now))
            }
            @if details.steps.len() > 1 { section { h2 { "Start" } (chart::waterfall(&details.steps)) } }
        }
        section #facts data-live {
            h2 { "Submission" }
            (about(of, now))
        }
        @if let Some(Value::Array(changes)) = &details.launch_changes { (launch_changes(changes)) }
        (spark::section(details.spark_ui.as_deref(), details.spark.as_ref(), of.attempt, now))
        section #executors data-live data-poll[!is_over] {
            h2 { "Executors " span.count { (executors.len()) @if executors.len() == EXECUTORS as usize { "+" } } }
            @if executors.is_empty() { p.quiet { "None was seen." } } @else {
                (chart::executors(executors, of.started_at.unwrap_or(of.created_at), end))
                (executor_table(executors, id, now))
            }
        }
        @if details.attempts.len() > 1 { (attempts(&details.attempts, now)) }
        @if let Some(usage) = &details.usage { (used(usage, details.currency.as_deref())) }
        @if !details.audit.is_empty() { (audit(&details.audit, now)) }
        @if let Some(request) = &details.request { (copy::section(request, of, details.host.as_deref())) }
    }
}

fn about(of: &Submission, now: DateTime<Utc>) -> Markup {
    let text = |text: &str| Some(word(text));
    let seconds = |seconds: Option<i32>| seconds.map(|seconds| html! { (seconds) " s" });
    let retries = of.max_retries().into_iter().filter(|(_, most)| *most > 0);
    let retries: Vec<_> = retries.map(|(kind, most)| format!("{most} {kind}")).collect();
    let retries = (!retries.is_empty()).then(|| html! { (retries.join(", ")) });
    let labels = (!of.labels.is_empty()).then(|| {
        html! {
            @for (key, value) in &of.labels {
                a.label href={ "../submissions?" (label_query(key, value)) } { (word(&format!("{key}={value}"))) } " "
            }
        }
    });
    let again = html! { a href={ "../submissions?" (label_query(RERUN_OF, of.id.as_str())) } { "Show them" } };
    facts(&[
        ("Owner", text(&of.owner)),
        ("Tenant", text(&of.tenant)),
        ("Submitted by", text(&of.principal)),
        ("Namespace", text(&of.namespace)),
        ("Spark", text(&of.spark_version)),
        ("Application", text(&of.names.app_id)),
        ("Attempt", Some(html! { (of.attempt) })),
        ("Queue", of.queue.as_deref().map(word)),
        ("Priority", of.queue.as_ref().and(of.priority).map(|priority| html! { (priority) })),
        ("Driver pod", text(&of.names.driver_pod)),
        ("Node", of.node.as_deref().map(word)),
        ("Accepted", Some(html! { (moment(of.created_at)) })),
        ("Admitted", of.admitted_at.map(moment)),
        ("Started", of.started_at.map(moment)),
        ("Ended", of.finished_at.map(moment)),
        ("Ran", of.started_at.map(|from| lasted(from, of.finished_at, now))),
        ("Exit code", of.exit_code.map(|code| html! { (code) })),
        ("Start timeout", seconds(of.start_timeout)),
        ("Run timeout", seconds(of.run_timeout)),
        ("Kill grace", seconds(of.kill_grace)),
        ("Retries", retries),
        ("Rerun of", of.labels.get(RERUN_OF).map(|id| html! { a href={ "../submissions/" (id) } { (word(id)) } })),
        ("Reruns", Some(again)),
        ("Labels", labels),
    ])
}

/// Shows why the driver isn't what the request says.
fn launch_changes(changes: &[Value]) -> Markup {
    html! {
        section {
            h2 { "Changed at its launch" }
            @for change in changes {
                p.quiet { "By " code { (change["by"].as_str().unwrap_or_default()) } }
                ul {
                    @for (part, values) in change.as_object().into_iter().flatten().filter(|(part, _)| *part != "by") {
                        @for (key, value) in values.as_object().into_iter().flatten() {
                            li { @if part != "properties" { (part) " " } code { (word(key)) "=" (word(&plain(value))) } }
                        }
                    }
                }
            }
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn label_query(key: &str, value: &str) -> String {
    form_urlencoded::Serializer::new(String::new()).append_pair("label", &format!("{key}={value}")).finish()
}

fn executor_table(executors: &[ExecutorRecord], id: &str, now: DateTime<Utc>) -> Markup {
    html! {
        details open[executors.len() <= 10] {
            summary { "Table" @if executors.len() > SHOWN_EXECUTORS { " of the last " (SHOWN_EXECUTORS) } }
            div.scroll tabindex="0" role="region" aria-label="Executors" { table.plain {
                thead {
                    tr {
                        th scope="col" { "Id" } th scope="col" { "State" } th scope="col" { "Pod" } th scope="col" { "Node" }
                        th scope="col" { "Ran" } th scope="col" { "Reason" } th scope="col" { "Log" }
                    }
                }
                tbody {
                    @for one in executors.iter().rev().take(SHOWN_EXECUTORS) {
                        tr {
                            td { @if one.attempt > 1 { (one.attempt) "/" } (one.executor_id) }
                            td { span class={ "state " (one.state.as_str().to_lowercase()) } { (one.state.as_str()) } }
                            td { (word(&one.pod_name)) }
                            td { @if let Some(node) = &one.node { (word(node)) } }
                            td { @if let Some(from) = one.started_at { (lasted(from, one.finished_at, now)) } }
                            td.wide {
                                @if let Some(reason) = &one.reason { (word(reason)) }
                                @if let Some(code) = one.exit_code.filter(|code| *code != 0) { " exit code " (code) }
                            }
                            td { a href={ (id) "/logs?attempt=" (one.attempt) "&executor=" (one.executor_id) } { "Log" } }
                        }
                    }
                }
            } }
        }
    }
}

fn attempts(attempts: &[AttemptRecord], now: DateTime<Utc>) -> Markup {
    html! {
        section {
            h2 { "Attempts" }
            table.plain {
                thead { tr { th scope="col" { "Attempt" } th scope="col" { "State" } th scope="col" { "Queued" } th scope="col" { "Ran" } th scope="col" { "Why" } } }
                tbody {
                    @for one in attempts {
                        @let why = FailureReason::ended(one.state, one.exit_code, one.reason.as_deref(), one.message.as_deref());
                        tr {
                            td { (one.attempt) }
                            td { (badge(one.state)) }
                            td { (ago(one.queued_at, now)) }
                            td { @if let Some(from) = one.started_at { (lasted(from, one.finished_at, now)) } }
                            td.wide { @if let Some(why) = why { code { (why.code.as_str()) } " " (word(&why.message)) } }
                        }
                    }
                }
            }
        }
    }
}

fn used(usage: &SubmissionUsage, currency: Option<&str>) -> Markup {
    let cells = |of: &UsageOf| {
        html! {
            @for used in [&of.driver, &of.executors, &of.total] {
                td.number { (amount(&used.core_seconds, 3600.0)) }
                td.number { (amount(&used.memory_byte_seconds, 3600.0 * 1024.0 * 1024.0 * 1024.0)) }
            }
            @if let Some(cost) = &of.cost { td.number { (amount(cost, 1.0)) " " (currency.unwrap_or_default()) } }
        }
    };
    html! {
        section {
            h2 { "Usage" }
            div.scroll tabindex="0" role="region" aria-label="Usage" {
                table.plain {
                    thead {
                        tr { td rowspan="2" {} @for of in ["Driver", "Executors", "Total"] { th.number colspan="2" scope="colgroup" { (of) } } @if usage.total.cost.is_some() { th.number rowspan="2" scope="col" { "Cost" } } }
                        tr { @for _ in 0..3 { th.number scope="col" { "core h" } th.number scope="col" { "GiB h" } } }
                    }
                    tbody {
                        @if usage.attempts.len() > 1 { @for (attempt, of) in &usage.attempts { tr { th scope="row" { "Attempt " (attempt) } (cells(of)) } } }
                        tr { th scope="row" { "All" } (cells(&usage.total)) }
                    }
                }
            }
        }
    }
}

fn audit(entries: &[AuditEntry], now: DateTime<Utc>) -> Markup {
    html! {
        section {
            h2 { "Who did what" }
            table.plain {
                thead { tr { th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "What" } th scope="col" { "From" } th scope="col" { "Request" } } }
                tbody {
                    @for entry in entries {
                        tr {
                            td { (ago(entry.at, now)) }
                            td { (word(&entry.principal)) }
                            td { (word(&entry.action)) " " span.quiet { (word(&entry.verdict)) } }
                            td { @if let Some(address) = &entry.address { (word(address)) } }
                            td { @if let Some(request) = &entry.request_id { code { (cut(request, 64)) } } }
                        }
                    }
                }
            }
        }
    }
}

/// Kills a submission and shows it.
pub(super) async fn kill(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
) -> Result<Response, Problem> {
    let answer = state.service.submissions.request_kill(&caller, &id).await?;
    answer.submission.ok_or_else(|| no_such_submission(&id))?;
    Ok(super::page::seen_at(format!("../{id}")))
}
