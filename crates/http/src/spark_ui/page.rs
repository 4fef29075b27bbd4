//! Our own pages in the place of a Spark UI.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, html};

use sparkgate_submission::SubmissionId;

/// The pages have a style sheet in themselves, and nothing else.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const STYLE: &str = ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;margin:15vh auto;max-width:34rem;padding:0 1rem}a{color:inherit}";
/// After how many seconds a page asks again.
const AGAIN: u16 = 3;

/// Returns the page of a driver whose UI doesn't answer. It loads itself again.
pub(super) fn not_up(why: &str) -> Response {
    let content = html! {
        h1 { "The Spark UI isn't up" }
        p { "It doesn't answer: " (why) ". A driver has a UI from the moment that it has a SparkContext until it stops that." }
        p { "This page tries again every " (AGAIN) " seconds." }
    };
    let mut response = page(StatusCode::SERVICE_UNAVAILABLE, Some(AGAIN), &content);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(AGAIN));
    response
}

/// Returns the page of a submission that has ended, and has no UI elsewhere.
pub(crate) fn ended(id: &SubmissionId) -> Response {
    let content = html! {
        h1 { "The Spark UI is gone" }
        p { "Submission " code { (id) } " has ended, and its driver with it." }
        p { "Spark's History Server shows ended applications that wrote their events (" code { "spark.eventLog.enabled" } "). An operator of this "
            "gateway can let this page lead there (" code { "--spark-history-url" } ")." }
    };
    page(StatusCode::NOT_FOUND, None, &content)
}

/// A problem as its page shows it.
pub(crate) struct Shown<'a> {
    pub(crate) status: u16,
    pub(crate) title: &'a str,
    pub(crate) detail: &'a str,
    pub(crate) request_id: &'a str,
    /// In seconds.
    pub(crate) retry_after: Option<u16>,
    /// The way to the console, if the page is beside it.
    pub(crate) console: Option<&'a str>,
}

/// Returns the page of a problem. It asks for nothing again: the reader does.
pub(crate) fn problem(shown: &Shown<'_>) -> Response {
    let content = html! {
        h1 { (shown.title) }
        p { (shown.detail) }
        @if shown.retry_after.is_some() { p { a href="" { "Try again" } } }
        @if let Some(console) = shown.console { p { a href=(console) { "Submissions" } } }
        p { small { "Request " code { (shown.request_id) } } }
    };
    let mut response = page(StatusCode::from_u16(shown.status).unwrap_or_default(), None, &content);
    if let Some(seconds) = shown.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn page(status: StatusCode, again: Option<u16>, content: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                @if let Some(seconds) = again { meta http-equiv="refresh" content=(seconds); }
                title { "Spark UI · Sparkgate" }
                style { (STYLE) }
            }
            body { main { (content) } }
        }
    };
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, page.into_string()).into_response()
}
