//! What browsers say of themselves of a request (Fetch Metadata): which page sends it, and what for. Scripts can't set these headers.
//! `Accept` is the one exception.

use axum::http::{HeaderMap, HeaderName, header};

/// Returns whether a page of this gateway's own origin sends the request.
pub fn is_of_own_page(headers: &HeaderMap) -> bool {
    site(headers) == Some("same-origin")
}

/// Returns whether a page of this gateway's own site, such as the console, loads something as a part of itself.
pub fn is_part_of_own_page(headers: &HeaderMap) -> bool {
    matches!(site(headers), Some("same-origin" | "same-site")) && !is_navigation(headers)
}

/// Returns whether a page of another origin loads something as a part of itself.
pub fn is_part_of_foreign_page(headers: &HeaderMap) -> bool {
    matches!(site(headers), Some("cross-site" | "same-site")) && !is_navigation(headers)
}

/// Returns whether a user opens a page: by its address, or by a link of any site.
pub fn is_opened(headers: &HeaderMap) -> bool {
    matches!(site(headers), None | Some("none")) || is_navigation(headers)
}

/// Returns whether a script reads something.
pub fn is_of_script(headers: &HeaderMap) -> bool {
    text(headers, "sec-fetch-dest") == Some("empty")
}

/// Returns whether a browser sends the request, for a page or for its user. Over plain HTTP it doesn't say so in `Sec-Fetch-*`, nor in
/// `Origin` for what a page reads of its own origin; but no page can leave out all of these.
pub(crate) fn is_of_browser(headers: &HeaderMap) -> bool {
    let says_so = |name: &HeaderName| {
        matches!(*name, header::ORIGIN | header::REFERER | header::ACCEPT_LANGUAGE)
            || name.as_str().starts_with("sec-fetch-")
    };
    let agent = headers.get(header::USER_AGENT);
    headers.keys().any(says_so) || agent.is_some_and(|agent| agent.as_bytes().starts_with(b"Mozilla/"))
}

/// Returns whether a client wants a page, and not a document for programs.
pub fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| range.trim_start().starts_with("text/html"))
}

fn is_navigation(headers: &HeaderMap) -> bool {
    text(headers, "sec-fetch-mode") == Some("navigate")
}

fn site(headers: &HeaderMap) -> Option<&str> {
    text(headers, "sec-fetch-site")
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
