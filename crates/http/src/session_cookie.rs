//! The requests for which the cookie of a session counts: those of the console, what its pages read
//! of the resource API by themselves, and the Spark UI, which they link to.
//!
//! A browser adds cookies to requests whichever page sends them. `SameSite=Lax` keeps them from pages of other sites, but not from
//! those of neighbours such as another name below `example.org`. So a request must say itself that it comes from a page of this
//! gateway, in `Sec-Fetch-Site`, which scripts can't set and each browser of the last years sends. Only a page that a user opens
//! counts without it.

use axum::http::{HeaderMap, Method};

use super::cookies::session;
use sparkgate_service::SessionCookie;
use sparkgate_web::{
    face::AnyFace,
    fetch_metadata::{is_of_own_page, is_of_script, is_opened},
    routes::SessionUse,
};

/// Returns the session's cookie of a request, if it counts for it.
pub(super) fn read_session<'a>(
    method: &Method,
    headers: &'a HeaderMap,
    (face, route): (&AnyFace, SessionUse),
    is_https: Option<bool>,
) -> Option<SessionCookie<'a>> {
    let counts = counts(method, headers, face.is_for_browsers(), route);
    let (value, _) = session(headers, is_https).filter(|_| counts)?;
    Some(SessionCookie { value, is_use: !is_of_script(headers) })
}

fn counts(method: &Method, headers: &HeaderMap, is_console: bool, route: SessionUse) -> bool {
    let is_own = is_of_own_page(headers);
    match route {
        _ if is_console => is_own || method.is_safe() && is_opened(headers),
        _ if !method.is_safe() => false,
        SessionUse::ReadByPages => is_own,
        SessionUse::OpenedByUsers => is_own || is_opened(headers),
        SessionUse::None => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::http::HeaderValue;

    use super::*;
    use crate::console::Console;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn a_session_counts_for_pages_that_users_open_and_for_requests_of_own_pages() {
        let site = |value| ("sec-fetch-site", value);
        let opened = ("sec-fetch-mode", "navigate");
        let (console, other) = (true, false);
        let (none, events, ui) = (SessionUse::None, SessionUse::ReadByPages, SessionUse::OpenedByUsers);
        for (is_console, method, route, extra, expected) in [
            (console, Method::GET, none, vec![], true),
            (console, Method::GET, none, vec![site("none"), opened], true),
            (console, Method::GET, none, vec![site("cross-site"), opened], true),
            (console, Method::GET, none, vec![site("same-origin")], true),
            (console, Method::GET, none, vec![site("same-site"), ("sec-fetch-mode", "no-cors")], false),
            (console, Method::GET, none, vec![site("cross-site"), ("sec-fetch-mode", "cors")], false),
            (console, Method::POST, none, vec![site("same-origin")], true),
            (console, Method::POST, none, vec![site("same-site"), opened], false),
            (console, Method::POST, none, vec![site("cross-site"), opened], false),
            (console, Method::POST, none, vec![site("none"), opened], false),
            (console, Method::POST, none, vec![], false),
            (other, Method::GET, events, vec![site("same-origin")], true),
            (other, Method::GET, events, vec![site("same-origin")], true),
            (other, Method::GET, events, vec![], false),
            (other, Method::GET, events, vec![site("same-site"), opened], false),
            (other, Method::GET, events, vec![site("none"), opened], false),
            (other, Method::GET, none, vec![site("same-origin")], false),
            (other, Method::GET, ui, vec![site("same-origin"), opened], true),
            (other, Method::GET, ui, vec![site("cross-site"), opened], true),
            (other, Method::GET, ui, vec![site("cross-site"), ("sec-fetch-mode", "cors")], false),
            (other, Method::POST, ui, vec![site("same-origin"), opened], false),
            (other, Method::POST, events, vec![site("same-origin")], false),
            (other, Method::POST, none, vec![site("same-origin")], false),
        ] {
            let headers = headers(&extra);
            let counts = counts(&method, &headers, is_console, route);
            assert_eq!(counts, expected, "{is_console} {method} {headers:?}");
        }
    }

    #[test]
    fn what_a_page_sends_by_itself_is_no_use() {
        let face: AnyFace = Arc::new(Console);
        for (destination, expected) in [("document", true), ("empty", false)] {
            let headers = headers(&[
                ("cookie", "sparkgate-session=x"),
                ("sec-fetch-site", "same-origin"),
                ("sec-fetch-dest", destination),
            ]);
            let cookie = read_session(&Method::GET, &headers, (&face, SessionUse::None), Some(false)).unwrap();
            assert_eq!(cookie.is_use, expected, "{destination}");
        }
    }
}
