//! Jobs: all runs of a name. The list, with the last runs of each as squares, and one job.

use axum::{extract::State, http::Uri, response::Response};
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    chart, compare, form,
    layout::{Frame, Section, badge, facts, root, word},
    page::page,
    text::{ago, cut, duration, moment, took},
};
use crate::v1::jobs::{self, JobName, JobQuery, TenantQuery};
use sparkgate_service::{Advice, ChangedSince, FailureReason, Job, JobRun, JobStarts, Session};
use sparkgate_submission::{State as SubmissionState, headline, headline_of_row};
use sparkgate_web::{problem::Problem, query, session::Caller, state::AppState};

/// The longest cause in a row, in bytes.
const CAUSE: usize = 200;

/// Shows a page of the list. Its parameters are those of `GET /v1/jobs`.
pub(super) async fn list(State(state): State<AppState>, Caller(caller): Caller, uri: Uri) -> Result<Response, Problem> {
    let query = form::filled(uri.query().unwrap_or_default());
    let asked: JobQuery = query::read(&query)?;
    let (items, next) = jobs::page(&state, &caller, asked).await?;
    let content = html! {
        h1.hidden { "Jobs" }
        (filters(&query, &caller))
        (table(&items, caller.tenants().len() > 1, Utc::now()))
        @if items.is_empty() {
            p.nothing {
                @if query.is_empty() { "No jobs yet: a job is all submissions of one name." }
                @else { "No job matches this filter. " a href="jobs" { "Show all" } }
            }
        }
        @if let Some(next) = &next {
            nav aria-label="Pages" { a.button rel="next" href={ "jobs?" (form::with(&query, &[("cursor", next)])) } { "More" } }
        }
    };
    let frame = Frame { title: "Jobs", section: Section::Jobs, path: uri.path(), caller: Some(&caller), live: None };
    Ok(page(frame.around(&content)))
}

fn filters(query: &str, caller: &Session) -> Markup {
    let value = |name: &str| form::values(query, name).into_iter().next().unwrap_or_default();
    let is_failing = value("failing") == "true";
    let tenants = caller.tenants();
    html! {
        div.filters { nav.groups aria-label="Jobs" {
            a href={ "jobs?" (form::with(query, &[("failing", "")])) } aria-current=[(!is_failing).then_some("page")] { "All" }
            a href={ "jobs?" (form::with(query, &[("failing", "true")])) } aria-current=[is_failing.then_some("page")] { "Failing" }
        }
        form method="get" {
            @if is_failing { input type="hidden" name="failing" value="true"; }
            input type="search" name="name" value=(value("name")) placeholder="Name begins with" aria-label="Name begins with";
            @if tenants.len() > 1 {
                select name="tenant" aria-label="Tenant" {
                    option value="" { "All tenants" }
                    @for tenant in &tenants { option value=(tenant) selected[*tenant == value("tenant")] { (tenant) } }
                }
            }
            button { "Filter" }
        } }
    }
}

fn table(items: &[Job], has_tenants: bool, now: DateTime<Utc>) -> Markup {
    if items.is_empty() {
        return html! {};
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label="Jobs" { table.plain.jobs {
            thead { tr {
                th scope="col" { "Job" }
                @if has_tenants { th scope="col" { "Tenant" } }
                th scope="col" { "Last runs" } th scope="col" { "Last run" } th.number scope="col" { "Succeeded" }
                th.number scope="col" { "Median" } th scope="col" { "Last success" } th scope="col" { "Next expected" }
            } }
            tbody {
                @for job in items {
                    @let last = job.runs.first();
                    tr {
                        th scope="row" {
                            a href=(link("jobs/", job, has_tenants)) { (word(&job.name)) }
                            @if let Some(cause) = last.and_then(cause) { span.cause title=(cut(&cause, 1000)) { (cut(headline_of_row(&cause), CAUSE)) } }
                        }
                        @if has_tenants { td { (word(&job.tenant)) } }
                        td { (strip(&job.runs, "submissions/")) }
                        td { @if let Some(run) = last { (badge(run.state)) " " (ago(run.created_at, now)) } }
                        td.number { (rate(job)) }
                        td.number { @if let Some(seconds) = job.history.median_seconds { (took(seconds)) } }
                        td { @match &job.history.last_success { Some((_, at)) => (ago(*at, now)), None => span.quiet { "–" } } }
                        td { (expected(job, now)) }
                    }
                }
            }
        } }
    }
}

/// Returns the address of a job's page.
fn link(folder: &str, job: &Job, has_tenants: bool) -> String {
    let name = utf8_percent_encode(&job.name, NON_ALPHANUMERIC);
    let tenant = form_urlencoded::Serializer::new(String::new()).append_pair("tenant", &job.tenant).finish();
    if has_tenants { format!("{folder}{name}?{tenant}") } else { format!("{folder}{name}") }
}

/// Shows runs as squares, the newest on the right.
fn strip(runs: &[JobRun], folder: &str) -> Markup {
    html! {
        ol.runs {
            @for run in runs.iter().rev() {
                @let state = run.state.as_str();
                @let title = run.seconds().map(|seconds| format!("{state} after {}", took(seconds))).unwrap_or_else(|| state.to_owned());
                li {
                    a class={ "run " (state.to_lowercase()) } href={ (folder) (run.id) } title={ (title) ", " (run.id) } {
                        span.hidden { (title) ", submitted " (run.created_at.format("%Y-%m-%d %H:%M")) }
                    }
                }
            }
        }
    }
}

fn rate(job: &Job) -> Markup {
    let (succeeded, all) = (job.history.succeeded, job.history.succeeded + job.history.failed);
    html! { @if all > 0 { span title={ (succeeded) " of " (all) } { (format!("{:.0} %", 100.0 * succeeded as f64 / all as f64)) } } }
}

/// Shows when the next run is expected, and that it is overdue.
fn expected(job: &Job, now: DateTime<Utc>) -> Markup {
    match job.history.next_expected_at {
        None => html! { span.quiet { "–" } },
        Some(at) if at < now => html! { "was expected " (ago(at, now)) },
        Some(at) => html! { "in " (duration(at - now)) },
    }
}

/// Returns why a run failed.
fn cause(run: &JobRun) -> Option<String> {
    let why = FailureReason::ended(run.state, run.exit_code, run.reason.as_deref(), run.message.as_deref())?;
    (run.state != SubmissionState::Killed).then_some(why.message)
}

/// Shows a job.
pub(super) async fn show(
    State(state): State<AppState>,
    Caller(caller): Caller,
    JobName { job }: JobName,
    uri: Uri,
) -> Result<Response, Problem> {
    let TenantQuery { tenant } = query::read(&form::filled(uri.query().unwrap_or_default()))?;
    let job = jobs::find(&state, &caller, tenant.as_deref(), &job).await?;
    let changed = state.service.submissions.changed_since_success(&caller, &job).await?;
    let starts = state.service.submissions.job_starts(&caller, &job).await?;
    let advice = state.service.spark_ui.advice(&caller, &job.tenant, &job.name).await?;
    let told = Told { changed, starts, advice };
    let content = content(&job, &told, &root(uri.path()), Utc::now());
    let frame = Frame { title: &job.name, section: Section::Jobs, path: uri.path(), caller: Some(&caller), live: None };
    Ok(page(frame.around(&content)))
}

/// What the runs of a job tell, beside their history.
struct Told {
    changed: Option<ChangedSince>,
    starts: JobStarts,
    advice: Vec<Advice>,
}

fn content(job: &Job, told: &Told, root: &str, now: DateTime<Utc>) -> Markup {
    let Told { changed, starts: times, advice } = told;
    let history = &job.history;
    let submissions = format!("{root}submissions/");
    let end = |end: &Option<(_, DateTime<Utc>)>| {
        end.as_ref().map(|(id, at): &(sparkgate_submission::SubmissionId, DateTime<Utc>)| {
            html! { (moment(*at)) ", " a href={ (submissions) (id) } { (id) } }
        })
    };
    let all = form_urlencoded::Serializer::new(String::new())
        .append_pair("name", &job.name)
        .append_pair("tenant", &job.tenant)
        .finish();
    html! {
        div.subject {
            p.crumbs { a href={ (root) "jobs" } { "Jobs" } }
            div.title { h1 { (word(&job.name)) } }
        }
        section {
            h2 { "Runs " span.count { (job.runs.len()) } }
            (strip(&job.runs, &submissions))
            (chart::durations(&job.runs))
            p.quiet { a href={ (root) "submissions?" (all) } { "Show them in the list" } }
        }
        section {
            h2 { "What they tell" }
            (facts(&[
                ("Tenant", Some(word(&job.tenant))),
                ("Succeeded", Some(html! { (history.succeeded) " of " (history.succeeded + history.failed) " (" (rate(job)) ")" })),
                ("Took", history.median_seconds.map(|median| html! {
                    (took(median)) " in the median" @if let Some(p90) = history.p90_seconds { ", " (took(p90)) " or less in nine of ten" }
                })),
                ("Last success", end(&history.last_success)),
                ("Last failure", end(&history.last_failure)),
                ("Next expected", history.next_expected_at.map(|at| html! { (moment(at)) ", " (expected(job, now)) })),
            ]))
            @if let Some(usual) = &history.usual_failure {
                h3 { "Usual failure: " (usual.code.as_str()) " (" (usual.count) " of " (history.failed) ")" }
                @if let Some(message) = &usual.message { pre.log.wrap tabindex="0" { (cut(headline(message), 2000)) } }
            }
        }
        @if let Some(changed) = changed { (changes(changed, &submissions)) }
        @if !times.steps.is_empty() { (starts(times)) }
        @if !advice.is_empty() { (advised(advice)) }
        (runs(&job.runs, &submissions, now))
    }
}

/// Shows what has changed since the last success.
fn changes(changed: &ChangedSince, submissions: &str) -> Markup {
    html! {
        section {
            h2 { "Changed since it last succeeded" }
            p.quiet {
                a href={ (submissions) (changed.success) } { (changed.success) } " succeeded, "
                a href={ (submissions) (changed.failure) } { (changed.failure) } " failed."
            }
            @if changed.differences.is_empty() { p { "Both requests are the same: look at the data, the image and the cluster." } } @else {
                (compare::table(&changed.differences, "Changes", ["When it succeeded", "When it failed"]))
            }
        }
    }
}

/// Shows how long the steps of the starts took.
fn starts(of: &JobStarts) -> Markup {
    html! {
        section {
            h2 { "Starts " span.count { (of.runs) } }
            div.scroll tabindex="0" role="region" aria-label="Starts" { table.plain {
                thead { tr {
                    th scope="col" { "Step" } th.number scope="col" { "Median" } th.number scope="col" { "Nine of ten, at most" }
                    th.number scope="col" { "Runs" }
                } }
                tbody {
                    @for one in &of.steps {
                        tr {
                            th scope="row" { (chart::in_words(one.step)) }
                            td.number { (took(one.median_seconds)) }
                            td.number { (took(one.p90_seconds)) }
                            td.number { (one.runs) }
                        }
                    }
                }
            } }
        }
    }
}

/// Shows advice of size.
fn advised(advice: &[Advice]) -> Markup {
    html! {
        section {
            h2 { "Size" }
            ul {
                @for one in advice {
                    li {
                        code { (one.property) @if let Some(suggested) = &one.suggested { "=" (suggested) } }
                        ": " (one.reason) " (" (one.runs.len()) " runs)."
                    }
                }
            }
        }
    }
}

fn runs(runs: &[JobRun], submissions: &str, now: DateTime<Utc>) -> Markup {
    html! {
        section {
            h2 { "The last runs" }
            div.scroll tabindex="0" role="region" aria-label="Runs" { table.plain {
                thead { tr {
                    th scope="col" { "Run" } th scope="col" { "State" } th scope="col" { "Submitted" } th.number scope="col" { "Took" }
                    th scope="col" { "By" } th scope="col" { "Cause" }
                } }
                tbody {
                    @for run in runs {
                        tr {
                            th scope="row" { a href={ (submissions) (run.id) } { (run.id) } }
                            td { (badge(run.state)) }
                            td { (ago(run.created_at, now)) }
                            td.number { @if let Some(seconds) = run.seconds() { (took(seconds)) } }
                            td { (word(&run.principal)) }
                            td.wide { @if let Some(cause) = cause(run) { (cut(headline_of_row(&cause), CAUSE)) } }
                        }
                    }
                }
            } }
        }
    }
}
