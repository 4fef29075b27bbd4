//! The differences between two runs of the same name.

use maud::{Markup, html};
use serde_json::Value;

use super::{
    form,
    layout::{badge, word},
    text::moment,
};
use sparkgate_service::{Difference, Filter, Session, Submission, differences};
use sparkgate_submission::SubmissionId;
use sparkgate_web::{
    id::{find, not_found as no_such_submission},
    problem::Problem,
    state::AppState,
};

/// How many runs can be chosen.
const RUNS: usize = 20;
/// How many submissions are read to find them: names are found by their beginning.
const READ: u32 = 100;

/// A run and what it is compared with.
pub(super) struct Comparison {
    id: SubmissionId,
    /// The other runs of the same name, the newest first.
    runs: Vec<Submission>,
    /// The chosen one, and what differs.
    with: Option<(SubmissionId, Vec<Difference>)>,
}

impl Comparison {
    /// Reads the other runs of a submission's name, and the one that the parameter `with` names.
    pub(super) async fn read(
        state: &AppState,
        caller: &Session,
        of: &Submission,
        request: &Value,
        query: &str,
    ) -> Result<Self, Problem> {
        let submissions = &state.service.submissions;
        let filter = Filter {
            name_prefix: Some(of.name.clone()),
            tenant: Some(of.tenant.clone()),
            namespace: Some(of.namespace.clone()),
            ..Filter::default()
        };
        let runs = match of.name.is_empty() {
            true => Vec::new(),
            false => submissions.submissions(caller, &filter, None, READ).await?.items,
        };
        let runs = runs.into_iter().filter(|run| run.name == of.name && run.id != of.id).take(RUNS).collect();
        let with = match form::values(query, "with").into_iter().next().filter(|id| !id.is_empty()) {
            None => None,
            Some(text) => {
                let id: SubmissionId = text.parse().map_err(|_| no_such_submission(&text))?;
                find(&state.service, caller, &id).await?;
                let other = submissions.request(caller, &id).await?.unwrap_or_default();
                let found = differences(request, &other);
                Some((id, found))
            }
        };
        Ok(Self { id: of.id.clone(), runs, with })
    }
}

/// Shows the choice of another run, and the differences.
pub(super) fn compared(comparison: &Comparison) -> Markup {
    let Comparison { id, runs, with } = comparison;
    if runs.is_empty() && with.is_none() {
        return html! {};
    }
    html! {
        section #compare {
            h2 { "Compare with another run" }
            form.logbar method="get" {
                select name="with" aria-label="Another run of this name" {
                    @for run in runs {
                        @let chosen = with.as_ref().is_some_and(|(with, _)| *with == run.id);
                        option value=(run.id) selected[chosen] { (run.id) " " (run.state.as_str()) }
                    }
                }
                button { "Compare" }
            }
            @if let Some((with, found)) = with {
                p.quiet {
                    a href={ "../" (with) } { (with) }
                    @if let Some(run) = runs.iter().find(|run| run.id == *with) { " " (badge(run.state)) " accepted " (moment(run.created_at)) }
                }
                @if found.is_empty() { p { "Both requests are the same." } } @else {
                    (table(found, "Differences", ["This run", "The other run"]))
                }
            }
            @else { p.quiet { "The newest runs of this name, other than " code { (id) } "." } }
        }
    }
}

/// Shows the parts that differ, with their values under these titles.
pub(super) fn table(found: &[Difference], label: &str, [here, there]: [&str; 2]) -> Markup {
    let value = |value: &Option<String>| match value {
        Some(value) => word(value),
        None => html! { span.quiet { "–" } },
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label=(label) {
            table.plain.properties {
                thead { tr { th scope="col" { "Part" } th scope="col" { (here) } th scope="col" { (there) } } }
                tbody {
                    @for Difference { part, here, there } in found {
                        tr { th scope="row" { (word(part)) } td { (value(here)) } td { (value(there)) } }
                    }
                }
            }
        }
    }
}
