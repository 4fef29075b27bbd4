//! Sign-in and sign-out of browsers. These paths need no caller.

use std::net::IpAddr;

use axum::{
    extract::{Extension, Request, State},
    http::{HeaderValue, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use maud::{Markup, html};

use super::{
    form,
    layout::{Frame, Section, root},
    page::page,
};
use crate::cookies::{self, SESSION, SIGN_IN};
use sparkgate_metrics::metrics;
use sparkgate_server::Peer;
use sparkgate_service::{
    Authenticator, Exceeded, Requester, SignInAnswer, SignInError, SignInWays, SignedIn, Unauthenticated,
};
use sparkgate_submission::SubmissionId;
use sparkgate_web::{
    fetch_metadata::is_of_own_page,
    problem::{Code, Problem},
    request_log::{RequestId, text},
    state::AppState,
};

/// How many seconds a user has for the issuer's pages.
const PATIENCE: u32 = 600;
/// The page after a sign-in without another one.
pub(super) const FIRST: &str = "submissions";
/// Where the addresses of Spark UIs begin, below the console's root.
const UIS: &str = "../v1/submissions/";
/// The longest API key that the form takes, in characters.
const LONGEST_KEY: usize = 200;
/// The longest address of a page to return to.
const LONGEST: usize = 2000;

/// Returns an address relative to the console's root: that of one of its pages, or of a Spark UI; `None` for every other one.
pub(super) fn local(to: &str) -> Option<&str> {
    let path = to.split(['?', '#']).next()?;
    let is_page = match path.strip_prefix(UIS) {
        Some(rest) => is_ui(rest),
        None => {
            matches!(path.split('/').next(), Some(FIRST | "jobs" | "queues" | "sessions" | "overview" | "operator"))
                && !climbs(path)
        }
    };
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '\\' | '"' | '<' | '>');
    (is_page && !path.contains('%') && to.len() <= LONGEST && to.chars().all(is_plain)).then_some(to)
}

/// Returns whether a path behind `/v1/submissions/` is that of a Spark UI.
fn is_ui(path: &str) -> bool {
    let Some((id, below)) = path.split_once('/') else { return false };
    let below = below.strip_suffix('/').unwrap_or(below);
    id.parse::<SubmissionId>().is_ok() && !climbs(below) && below.split('/').next() == Some("ui")
}

fn climbs(path: &str) -> bool {
    path.split('/').any(|segment| segment.is_empty() || segment.starts_with('.'))
}

/// Returns the page to return to after a sign-in, for a request without a caller.
pub(super) fn page_of(uri: &Uri) -> String {
    let whole = uri.path_and_query().map_or("", |whole| whole.as_str());
    let to = whole.strip_prefix("/console/").map_or_else(|| format!("..{whole}"), str::to_owned);
    local(&to).unwrap_or(FIRST).to_owned()
}

/// The ways to sign in, with the page that is shown afterwards.
pub(super) fn ways(path: &str, to: &str, ways: &SignInWays) -> Markup {
    let root = root(path);
    let SignInWays { issuers, has_key } = ways;
    let query = |issuer: &str| {
        form_urlencoded::Serializer::new(String::new()).append_pair("issuer", issuer).append_pair("to", to).finish()
    };
    html! {
        @for issuer in issuers {
            a.button.primary href={ (root) "sign-in?" (query(issuer)) } {
                "Sign in" @if issuers.len() > 1 { " with " (issuer) }
            }
        }
        @if *has_key {
            form.sign-in method="post" action={ (root) "sign-in/key" } {
                input type="hidden" name="to" value=(to);
                label { "API key" input type="password" name="key" required autofocus autocomplete="current-password" maxlength=(LONGEST_KEY) spellcheck="false"; }
                button.primary { "Sign in" }
            }
        }
    }
}

/// Counts a sign-in that failed.
///
/// # Errors
/// There were too many from this address.
pub(super) fn count_failed(authenticator: &Authenticator, address: Option<IpAddr>) -> Result<(), Problem> {
    let Some(address) = address else { return Ok(()) };
    authenticator.count_failed_login(address).map_err(|exceeded| limited(&exceeded))
}

pub(super) fn limited(exceeded: &Exceeded) -> Problem {
    Problem::new(Code::RateLimited, format!("{exceeded}; try again in a while."))
}

/// Sends the browser to the issuer.
pub(super) async fn begin(State(state): State<AppState>, uri: Uri) -> Result<Response, Problem> {
    let value = |name: &str| form::values(uri.query().unwrap_or_default(), name).into_iter().next().unwrap_or_default();
    let (issuer, to) = (value("issuer"), value("to"));
    let authenticator = &state.service.authenticator;
    let begun = authenticator.begin_sign_in(&issuer, local(&to).unwrap_or(FIRST)).await.map_err(problem)?;
    let is_https = authenticator.is_https().unwrap_or(true);
    let cookie = cookies::set(SIGN_IN, &begun.cookie, is_https, Some(PATIENCE));
    sent_to(&begun.url, [cookie])
}

/// Takes the issuer's answer, and begins a session.
pub(super) async fn callback(
    State(state): State<AppState>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, Problem> {
    let (request, _) = request.into_parts();
    let authenticator = &state.service.authenticator;
    let is_https = authenticator.is_https().unwrap_or(true);
    let query = request.uri.query().unwrap_or_default();
    let value = |name: &str| match form::values(query, name).as_slice() {
        [value] => Some(value.clone()),
        _ => None,
    };
    let (code, given, issuer, error) = (value("code"), value("state"), value("iss"), value("error"));
    let answer = SignInAnswer {
        cookie: cookies::value(&request.headers, SIGN_IN, is_https),
        session: cookies::value(&request.headers, SESSION, is_https),
        code: code.as_deref(),
        state: given.as_deref(),
        issuer: issuer.as_deref(),
        error: error.as_deref(),
    };
    let address = request.extensions.get::<Peer>().map(Peer::client);
    let from = Requester { address, request_id: text(&id) };
    let SignedIn { cookie, to } = match authenticator.complete_sign_in(&answer, from).await {
        Ok(signed_in) => signed_in,
        Err(why) => {
            let is_away = matches!(why, SignInError::Unavailable(_));
            let kind = if is_away { "unavailable" } else { "invalid" };
            metrics().logins_refused.with([kind]).inc();
            if !is_away {
                count_failed(authenticator, address)?;
            }
            return Err(problem(why));
        }
    };
    let cookies = [cookies::set(SIGN_IN, "", is_https, None), cookies::set(SESSION, &cookie, is_https, None)];
    sent_to(&format!("../{}", local(&to).unwrap_or(FIRST)), cookies)
}

/// Ends the session, and leads on to the issuer's page that ends the session there.
pub(super) async fn sign_out(
    State(state): State<AppState>,
    Extension(id): Extension<RequestId>,
    request: Request,
) -> Result<Response, Problem> {
    let (request, _) = request.into_parts();
    if !is_of_own_page(&request.headers) {
        let detail = "Only a page of this gateway can end a session: use its button.";
        return Err(Problem::new(Code::Forbidden, detail));
    }
    let authenticator = &state.service.authenticator;
    let session = cookies::session(&request.headers, authenticator.is_https());
    let is_https = session.map(|(_, is_https)| is_https).or_else(|| authenticator.is_https()).unwrap_or(true);
    let from = Requester { address: request.extensions.get::<Peer>().map(Peer::client), request_id: text(&id) };
    let onward = match session.map(|(cookie, _)| cookie) {
        Some(cookie) => authenticator.sign_out(cookie, from).await.map_err(problem)?,
        None => None,
    };
    let mut response = farewell(&state, request.uri.path(), onward.as_deref());
    // Not a redirect: the pages' policy lets forms lead to this gateway only.
    if let Some(onward) = onward.and_then(|onward| HeaderValue::try_from(format!("0; url={onward}")).ok()) {
        response.headers_mut().insert(header::REFRESH, onward);
    }
    let cookie = cookies::set(SESSION, "", is_https, None).ok_or_else(unwritable)?;
    response.headers_mut().insert(header::SET_COOKIE, cookie);
    Ok(response)
}

/// Says that the user has signed out.
pub(super) async fn signed_out(State(state): State<AppState>, uri: Uri) -> Response {
    farewell(&state, uri.path(), None)
}

fn farewell(state: &AppState, path: &str, onward: Option<&str>) -> Response {
    let known = state.service.authenticator.sign_in_ways();
    let content = html! {
        section.problem {
            h1 { "Signed out" }
            p { "This browser has no session with the gateway any more." }
            div.actions {
                @if let Some(onward) = onward { a.button href=(onward) rel="noreferrer" { "Sign out of the issuer, too" } }
                @else { (ways(path, FIRST, &known)) }
            }
        }
    };
    let frame = Frame { title: "Signed out", section: Section::None, path, caller: None, live: None };
    let mut response = page(frame.around(&content));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Redirects with cookies. No cache may keep them.
pub(super) fn sent_to<const COUNT: usize>(
    location: &str,
    cookies: [Option<HeaderValue>; COUNT],
) -> Result<Response, Problem> {
    let location = HeaderValue::try_from(location).map_err(|_| unwritable())?;
    let headers = [
        (header::LOCATION, location),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    let mut response = (StatusCode::SEE_OTHER, headers).into_response();
    for cookie in cookies {
        response.headers_mut().append(header::SET_COOKIE, cookie.ok_or_else(unwritable)?);
    }
    Ok(response)
}

fn unwritable() -> Problem {
    Problem::internal("a header of a sign-in can't be written".to_owned())
}

fn problem(why: SignInError) -> Problem {
    let code = match why {
        SignInError::NoIssuer => Code::NotFound,
        SignInError::Foreign | SignInError::Refused(_) | SignInError::Unusable(_) => Code::Unauthenticated,
        SignInError::Unavailable(_) => Code::AuthenticationUnavailable,
    };
    Problem::new(code, sentence(&why))
}

/// Writes an error as a sentence.
pub(super) fn sentence(why: &dyn std::error::Error) -> String {
    let text = why.to_string();
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    format!("{}{}.", first.map(String::from).unwrap_or_default(), letters.as_str())
}

/// Returns what a person reads who asks for a page without a caller.
pub(super) fn detail(why: &Unauthenticated, can_sign_in: bool) -> String {
    match why {
        Unauthenticated::Missing | Unauthenticated::UnknownSession if can_sign_in => {
            "This page is for users who have signed in.".to_owned()
        }
        why => sentence(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_returns_to_pages_of_the_console_only() {
        for to in [
            "submissions",
            "submissions?state=FAILED&label=a%3Db",
            "submissions?name=//evil.example",
            "submissions/driver-20260101000000-0001/logs?executor=1",
            "overview",
            "operator",
            "../v1/submissions/driver-20260101000000-0001/ui",
            "../v1/submissions/driver-20260101000000-0001/ui/",
            "../v1/submissions/driver-20260101000000-0001/ui/jobs/job/?id=1&x=%2F",
        ] {
            assert_eq!(local(to), Some(to));
        }
        for to in [
            "",
            "/",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "https://evil.example",
            "https:evil.example",
            "https:/evil.example",
            "javascript:alert(1)",
            "data:text/html,x",
            "submissions//evil.example",
            "submissions/..//evil.example",
            "submissions/../../../evil",
            "submissions/%2e%2e/x",
            "submissions/%2F%2Fevil.example",
            "submissions\\evil",
            "submissions\r\nset-cookie: a=b",
            "submissions?a=\r\nb",
            "submissions\t",
            " submissions",
            "submissions@evil.example",
            "submissions.evil.example",
            "submissions:80",
            "sign-in?issuer=corp",
            "sign-out",
            "../v1/submissions",
            "../v1/submissions/x/ui",
            "../v1/submissions/driver-1",
            "../v1/submissions/driver-1/kill",
            "../v1/submissions/driver-1/ui//evil.example",
            "../v1/submissions/driver-1/ui/../../x",
            "../v1/submissions/driver-1/ui/%2e%2e/x",
            "../v1/submissions/driver-1/uix",
            "../../v1/submissions/driver-1/ui",
            "../submissions/../v1/submissions/driver-1/ui",
            "..//evil.example",
            "assets/1/x",
            "évil",
            "submissions?ü",
        ] {
            assert_eq!(local(to), None, "{to:?}");
        }
        assert_eq!(local(&format!("submissions?{}", "a".repeat(3000))), None);
    }

    #[test]
    fn a_page_without_a_caller_is_that_to_return_to() {
        for (uri, to) in [
            ("/console/submissions?state=LOST", "submissions?state=LOST"),
            ("/console/operator", "operator"),
            ("/console", "submissions"),
            ("/console/x//y", "submissions"),
            ("/v1/submissions/driver-1/ui/jobs/?id=1", "../v1/submissions/driver-1/ui/jobs/?id=1"),
            ("/v1/submissions/driver-1/logs", "submissions"),
            ("//evil.example/", "submissions"),
        ] {
            assert_eq!(page_of(&uri.parse().unwrap()), to, "{uri}");
        }
    }
}
