//! Responses with a page, and redirections to one.

use axum::{
    http::{HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use maud::Markup;

/// Scripts, styles and pictures are files of this gateway; pages are in no frame, and forms go only here. Where a browser knows
/// trusted types, only the one policy of `live.js` can make elements of text: of pages that this gateway rendered.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types sparkgate";

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Redirects a form to the page that shows what it did.
pub(super) fn seen_at(location: String) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
}

/// Returns a page with the headers of all of them.
pub(super) fn page(content: Markup) -> Response {
    with_headers(content.into_string())
}

/// Returns a page that is written already.
pub(super) fn with_headers(content: impl IntoResponse) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache")),
        // A page of a driver that opens the console has no hold of its window.
        (OPENER_POLICY, HeaderValue::from_static("same-origin")),
        // With `no-referrer`, which other pages have, browsers send `Origin: null` with forms, and the gateway refuses them.
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    ];
    (headers, content).into_response()
}
