//! Why a submission failed, or doesn't run yet.

use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::{
    layout::word,
    text::{ago, cut, without_colours},
};
use sparkgate_service::FailureReason;
use sparkgate_submission::{advice, headline};

/// The end of a driver's log that the page shows, in bytes.
const TAIL: usize = 8192;

/// Shows the reason with its remedy, the application's last words, and Kubernetes' events. What ended a submission is the title.
pub(super) fn reason(why: &FailureReason, is_over: bool, id: &str, now: DateTime<Utc>) -> Markup {
    let (what, remedy) = advice(why.code, is_over);
    let mut signs = Vec::new();
    signs.extend(why.exit_code.map(|code| format!("exit code {code}")));
    signs.extend(why.signal.map(str::to_owned));
    signs.extend(why.reason.as_ref().map(|reason| format!("reason {reason}")));
    html! {
        section class={ "why " (why.code.class().as_str()) } {
            @if is_over {
                h2.message { (word(headline(&why.message))) }
                p { (what) " " code { (why.code.as_str()) } }
            } @else {
                h2 { (what) " " code { (why.code.as_str()) } }
                p.message { (word(&why.message)) }
            }
            p.remedy { (remedy) }
            @if !signs.is_empty() { p.quiet { (word(&signs.join(" · "))) } }
            @if let Some(tail) = &why.log_tail {
                h3 { "The end of its output "
                    a href={ (id) "/logs?ownOutput=true" } { "All its output" } " " a href={ (id) "/logs" } { "The log" } }
                pre.log tabindex="0" { (cut(&without_colours(tail), TAIL)) }
            }
        }
        @if !why.events.is_empty() {
            section {
                h2 { "Kubernetes' events" }
                div.scroll tabindex="0" role="region" aria-label="Events" { table.plain {
                    thead { tr { th scope="col" { "When" } th scope="col" { "Type" } th scope="col" { "Reason" } th scope="col" { "Message" } } }
                    tbody {
                        @for event in &why.events {
                            tr class={ @if event.kind == "Warning" { "warning" } } {
                                td { @if let Some(at) = event.at { (ago(at, now)) } }
                                td { (word(&event.kind)) }
                                td { (word(&event.reason)) @if event.count > 1 { " ×" (event.count) } }
                                td.wide { (word(&event.message)) }
                            }
                        }
                    }
                } }
            }
        }
    }
}
