//! The Spark UI of a submission, and what its driver said last of its jobs and stages.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::{
    layout::{facts, word},
    text::{ago, cut},
};
use sparkgate_service::{ExecutorUse, Summary};

/// The longest reason of a failed stage that the page shows, in bytes.
const REASON: usize = 2000;

/// Shows the way to the UI, and the summary. `ui` is a path of this gateway, or a URL of the operator's History Server.
pub(super) fn section(ui: Option<&str>, summary: Option<&Summary>, attempts: i32, now: DateTime<Utc>) -> Markup {
    // From `/console/submissions/{id}`.
    let link = ui.map(|ui| if ui.starts_with('/') { format!("../..{ui}") } else { ui.to_owned() });
    html! {
        section #spark data-live {
            @if link.is_some() || summary.is_some() { h2 { "Spark" } }
            @if let Some(link) = &link {
                p.actions { a.button href=(link) target="_blank" rel="noopener noreferrer" { "Open Spark UI" } }
            }
            @if let Some(summary) = summary { (said(summary, attempts, now)) }
        }
    }
}

/// Shows what executors used.
fn executors(used: &ExecutorUse) -> Markup {
    let gib = |bytes: u64| format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30));
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    html! {
        (used.count)
        @if used.peak_heap > 0 { ", at most " (gib(used.peak_heap)) " of heap in one, " (gib(used.driver_peak_heap)) " in the driver" }
        @if let Some(busy) = used.busy() { ", cores busy for " (percent(busy)) " of their time" }
        @if let Some(gc) = used.garbage_collection() { ", " (percent(gc)) " of it garbage collection" }
    }
}

fn said(summary: &Summary, attempts: i32, now: DateTime<Utc>) -> Markup {
    let Summary { attempt, read_at, said } = summary;
    let (jobs, stages, tasks) = (&said.jobs, &said.stages, &said.tasks);
    // Jobs that ran after the driver was asked aren't counted.
    if jobs.running + jobs.succeeded + jobs.failed == 0 {
        return html! {
            p.quiet {
                "The driver " @if attempts > 1 { "of attempt " (attempt) " " } "had run no job when it was asked last, " (ago(*read_at, now)) "."
            }
        };
    }
    html! {
        p.quiet {
            "What the driver " @if attempts > 1 { "of attempt " (attempt) " " } "said last, " (ago(*read_at, now)) "."
        }
        (facts(&[
            ("Jobs", Some(html! { (jobs.running) " running, " (jobs.succeeded) " succeeded, " (jobs.failed) " failed" })),
            ("Stages", Some(html! { (stages.active) " active, " (stages.completed) " completed, " (stages.skipped) " skipped, " (stages.failed) " failed" })),
            ("Executors", said.executors.as_ref().map(executors)),
            ("Tasks", Some(html! { (tasks.active) " active, " (tasks.completed) " completed, " (tasks.failed) " failed, " (tasks.killed) " killed" })),
        ]))
        @if !said.latest.is_empty() {
            div.scroll tabindex="0" role="region" aria-label="Jobs" { table.plain {
                thead { tr { th.number scope="col" { "Job" } th scope="col" { "State" } th.number scope="col" { "Tasks" } th scope="col" { "Name" } } }
                tbody {
                    @for job in &said.latest {
                        tr {
                            td.number { (job.id) }
                            td { (word(&job.status)) }
                            td.number { (job.completed_tasks) "/" (job.tasks) }
                            td.wide { (word(&job.name)) }
                        }
                    }
                }
            } }
        }
        @for failure in &said.failures {
            h3 { "Stage " (failure.stage) @if failure.attempt > 0 { ", attempt " (failure.attempt) } " failed: " (word(&failure.name)) }
            pre.log.wrap tabindex="0" { (cut(&failure.reason, REASON)) }
        }
    }
}
