//! What all pages have in common: head, navigation, and small parts.

use maud::{DOCTYPE, Markup, html};

use super::{assets::HASH, text::visible};
use sparkgate_service::{Overview, Session};
use sparkgate_submission::State;

/// The part of the console that a page belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Submissions,
    Jobs,
    Queues,
    Sessions,
    Overview,
    Operator,
    /// Of a problem.
    None,
}

/// The frame of a page.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    pub(super) section: Section,
    pub(super) path: &'a str,
    pub(super) caller: Option<&'a Session>,
    /// What the page follows, if it is live.
    pub(super) live: Option<Live>,
}

/// Where a page follows events.
pub(super) struct Live {
    /// The number of the newest event before the page was read.
    pub(super) after: i64,
    /// The parameters of `/v1/events` besides `after`.
    pub(super) filter: String,
}

/// Returns the way from a page to the console's root: `../` for each folder.
pub(super) fn root(path: &str) -> String {
    match path.strip_prefix("/console/") {
        Some(rest) => "../".repeat(rest.matches('/').count()),
        None => format!("{}console/", "../".repeat(path.matches('/').count().saturating_sub(1))),
    }
}

impl Frame<'_> {
    /// Puts the frame around the content of a page.
    pub(super) fn around(&self, content: &Markup) -> Markup {
        let root = root(self.path);
        let asset = |file: &str| format!("{root}assets/{}/{file}", *HASH);
        let link = |section: Section, name: &str, path: &str| {
            let current = (section == self.section).then_some("page");
            html! { a href={ (root) (path) } aria-current=[current] { (name) } }
        };
        let after = self.live.as_ref().map(|live| live.after);
        let filter = self.live.as_ref().map(|live| live.filter.as_str());
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (visible(self.title)) " · Sparkgate" }
                    link rel="icon" type="image/svg+xml" href=(asset("icon.svg"));
                    link rel="stylesheet" href=(asset("console.css"));
                    script type="module" src=(asset("console.js")) {}
                }
                body data-root=(root) data-events=[filter] data-after=[after] {
                    a.skip href="#main" { "Skip to the content" }
                    header.top {
                        a.brand href={ (root) "submissions" } { img src=(asset("icon.svg")) alt="" width="18" height="18"; "Sparkgate" }
                        nav aria-label="Console" {
                            (link(Section::Submissions, "Submissions", "submissions"))
                            (link(Section::Jobs, "Jobs", "jobs"))
                            @if self.caller.is_some_and(|caller| !caller.access().queues().is_empty()) {
                                (link(Section::Queues, "Queues", "queues"))
                            }
                            (link(Section::Sessions, "Sessions", "sessions"))
                            (link(Section::Overview, "Overview", "overview"))
                            @if self.caller.is_some_and(Overview::may_see_installation) {
                                (link(Section::Operator, "Operator", "operator"))
                            }
                        }
                        span.live #live role="status" {}
                        @if let Some(caller) = self.caller {
                            span.caller title={ "The caller of this page: " (visible(caller.principal().subject())) } { (visible(caller.principal().display())) }
                            @if caller.browser_session().is_some() {
                                form.out method="post" action={ (root) "sign-out" } { button { "Sign out" } }
                            }
                        }
                        button.help type="button" hidden data-help aria-label="Keyboard" { "?" }
                    }
                    main #main tabindex="-1" { (content) }
                    dialog #keys aria-labelledby="keys-title" {
                        h2 #keys-title { "Keyboard" }
                        dl.keys {
                            dt { kbd { "j" } " " kbd { "k" } } dd { "next and previous submission" }
                            dt { kbd { "Enter" } } dd { "open it" }
                            dt { kbd { "x" } } dd { "select it" }
                            dt { kbd { "/" } } dd { "filter, or search a log" }
                            dt { kbd { "u" } } dd { "back to the list" }
                            dt { kbd { "?" } } dd { "this help" }
                        }
                        form method="dialog" { button { "Close" } }
                    }
                    dialog #question aria-labelledby="question-title" {
                        h2 #question-title {}
                        p {}
                        form method="dialog" { button autofocus { "Cancel" } button value="yes" {} }
                    }
                }
            }
        }
    }
}

/// Shows a state, in words beside its colour.
pub(super) fn badge(state: State) -> Markup {
    html! { span class={ "state " (state.as_str().to_lowercase()) } { (state.as_str()) } }
}

/// A list of names and values; values that are empty are left out.
pub(super) fn facts(facts: &[(&str, Option<Markup>)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts {
                @if let Some(value) = value { div { dt { (name) } dd { (value) } } }
            }
        }
    }
}

/// Shows a text of a job or a caller.
pub(super) fn word(text: &str) -> Markup {
    html! { bdi { (visible(text)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_begin_at_the_root_of_the_console() {
        for (path, expected) in [
            ("/console", "console/"),
            ("/console/", ""),
            ("/console/submissions", ""),
            ("/console/submissions/driver-1", "../"),
            ("/console/submissions/driver-1/logs", "../../"),
            ("/v1/submissions/driver-1/ui", "../../../console/"),
            ("/v1/submissions/driver-1/ui/jobs/", "../../../../../console/"),
        ] {
            assert_eq!(root(path), expected, "{path}");
        }
    }
}
