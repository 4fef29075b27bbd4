//! The top of each page of a submission: its name and state, what the caller may do with it, and the ways to its other pages.

use maud::{Markup, html};

use super::{
    layout::{badge, word},
    text::visible,
    waiting,
};
use sparkgate_access::Action;
use sparkgate_service::{Session, Submission};

/// What the caller of a page may do with its submission.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Actions {
    kill: bool,
    rerun: bool,
}

impl Actions {
    pub(super) fn of(caller: &Session, of: &Submission) -> Self {
        let kill = !of.state.is_terminal() && caller.killable().covers(&of.tenant, &of.principal);
        Self { kill, rerun: caller.require(Action::Submit).is_ok() }
    }
}

/// Returns the top of a page. `here` is the page, and empty for the first one.
pub(super) fn heading(of: &Submission, id: &str, here: &str, actions: Actions) -> Markup {
    let up = if here.is_empty() { "" } else { "../" };
    let tab = |path: &str, name: &str| {
        let current = (path == here).then_some("page");
        let slash = if path.is_empty() { "" } else { "/" };
        html! { a href={ (up) (id) (slash) (path) } aria-current=[current] { (name) } }
    };
    html! {
        header.subject {
            p.crumbs { a href={ (up) "../submissions" } data-up { "Submissions" } }
            div.title {
                h1 { (name(of)) }
                span #badge data-live { (badge(of.state)) }
                div.actions #actions data-live {
                    @if actions.kill { (waiting::button(of, up)) }
                    @if actions.rerun && here != "rerun" { a.button href={ (up) (id) "/rerun" } { "Run again" } }
                    @if actions.kill { (kill(of, up)) }
                }
            }
            p.id { code { (id) } button.copy type="button" hidden data-copy=(id) { "Copy" } }
            nav.tabs aria-label="Submission" {
                (tab("", "Summary"))
                (tab("logs", "Log"))
                (tab("configuration", "Configuration"))
            }
        }
    }
}

fn name(of: &Submission) -> Markup {
    html! { @if of.name.is_empty() { "(no name)" } @else { (word(&of.name)) } }
}

/// The form that kills a submission. With scripts, a dialog with these words asks first.
fn kill(of: &Submission, up: &str) -> Markup {
    let id = &of.id;
    let name = if of.name.is_empty() { id.as_str() } else { &of.name };
    html! {
        form method="post" action={ (up) (id) "/kill" } data-confirm={ "Kill " (visible(name)) "?" }
            data-details={ "It is " (of.state) ": " (id) ", of " (visible(&of.owner)) ", in the tenant " (visible(&of.tenant)) "." }
        {
            button.danger { "Kill" }
        }
    }
}
