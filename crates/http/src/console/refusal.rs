//! Problems as pages.

use std::sync::Arc;

use axum::{
    http::{StatusCode, Uri, header},
    response::Response,
};
use maud::{Markup, html};

use super::{
    layout::{Frame, Section, root},
    page::page,
    sign_in,
    text::cut,
};
use sparkgate_service::{Authenticator, Session, SignInWays, Unauthenticated};
use sparkgate_web::{
    problem::{Code, Problem, Retry, reason::Reason},
    request_log::{RequestId, text},
};

/// The longest detail of a problem: it may quote what a caller sent.
const DETAIL: usize = 2000;

/// Writes the problem of a response, if it has one, as a page.
pub(super) fn written(
    mut response: Response,
    path: &str,
    caller: Option<&Session>,
    id: &RequestId,
    authenticator: &Authenticator,
) -> Response {
    let Some(problem) = response.extensions_mut().remove::<Arc<Problem>>() else { return response };
    let status = response.status();
    problem.log();
    let ways = match problem.code {
        Code::Unauthenticated => sign_in::ways(path, "", &authenticator.sign_in_ways()),
        _ => html! {},
    };
    let mut written = render_problem(&problem, status, path, caller, id, &ways);
    for name in [header::RETRY_AFTER, header::ALLOW] {
        if let Some(value) = response.headers().get(&name) {
            written.headers_mut().insert(name, value.clone());
        }
    }
    written
}

/// Returns the page of a problem for a reader who isn't known.
pub(super) fn answer(problem: &Problem, path: &str, id: &RequestId) -> Response {
    render_problem(problem, status(problem.code), path, None, id, &html! {})
}

/// Returns the answer to a request without a known caller, with the ways to sign in.
pub(crate) fn unauthenticated(
    why: &Unauthenticated,
    code: Code,
    uri: &Uri,
    ways: &SignInWays,
    id: &RequestId,
) -> Response {
    let problem = Problem::new(code, sign_in::detail(why, !ways.are_none()));
    not_signed_in(&problem, uri.path(), &sign_in::page_of(uri), ways, id)
}

/// Returns the page of a problem with the ways to sign in, after which the page `to` follows.
pub(super) fn not_signed_in(problem: &Problem, path: &str, to: &str, ways: &SignInWays, id: &RequestId) -> Response {
    let ways = match problem.code {
        Code::Unauthenticated => sign_in::ways(path, to, ways),
        _ => html! {},
    };
    render_problem(problem, status(problem.code), path, None, id, &ways)
}

fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or_default()
}

fn render_problem(
    problem: &Problem,
    status: StatusCode,
    path: &str,
    caller: Option<&Session>,
    id: &RequestId,
    ways: &Markup,
) -> Response {
    let can_sign_in = !ways.0.is_empty();
    let title = if can_sign_in { "Sign in" } else { problem.code.title() };
    let content = html! {
        section.problem {
            p.status { (status.as_u16()) }
            h1 { (title) }
            p { (cut(&problem.detail, DETAIL)) }
            @if let Some(remedy) = remedy(problem.code).filter(|_| !can_sign_in) { p.remedy { (remedy) } }
            div.actions {
                @if can_sign_in { (ways) } @else { a.button href={ (root(path)) "submissions" } { "Submissions" } }
                @if is_passing(problem.code) { a.button href="" { "Try again" } }
            }
            p.quiet { "Request " code { (text(id)) } }
        }
    };
    let frame = Frame { title, section: Section::None, path, caller, live: None };
    let mut response = page(frame.around(&content));
    *response.status_mut() = status;
    response.extensions_mut().insert(Reason::of(problem));
    response
}

/// Returns what a person can do about a problem, if its detail doesn't say it.
fn remedy(code: Code) -> Option<&'static str> {
    Some(match code {
        Code::Unauthenticated => {
            "This gateway has no sign-in for browsers. An operator sets one up with an OpenID provider or API keys, or puts a proxy in \
             front that signs you in (docs/use/console.md)."
        }
        Code::Denied => "Ask an operator of the tenant for a role that may do this, or to do it for you.",
        Code::SubmissionNotFound => {
            "Check the id. Records are deleted some time after their end, and those of other tenants aren't shown."
        }
        Code::InvalidCursor => "Open the first page of the list again.",
        _ => return None,
    })
}

fn is_passing(code: Code) -> bool {
    matches!(code.retry(), Retry::Soon | Retry::Later | Retry::Perhaps)
}
