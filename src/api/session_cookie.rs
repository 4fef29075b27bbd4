//! The requests for which the cookie of a session counts: those of the console, what its pages read
//! of the resource API by themselves, and the Spark UI, which they link to.
//!
//! A browser adds cookies to requests whichever page sends them. `SameSite=Lax` keeps them from pages of other sites, but not from
//! those of neighbours such as another name below `example.org`. So a request must say itself that it comes from a page of this
//! gateway, in `Sec-Fetch-Site`, which scripts can't set and each browser of the last years sends. Only a page that a user opens
//! counts without it.

use axum::http::{HeaderMap, Method};

use super::{
    cookies::{SESSION, value},
    faces::Face,
    fetch_metadata::{is_of_own_page, is_of_script, is_opened},
};
use crate::service::SessionCookie;

/// What the pages link to: the Spark UI of a submission, which leads back here when its ticket has expired.
const OPENED_BY_USERS: [&str; 3] =
    ["/v1/submissions/{id}/ui", "/v1/submissions/{id}/ui/", "/v1/submissions/{id}/ui/{*path}"];
/// What the pages read by scripts.
const READ_BY_PAGES: [&str; 2] = ["/v1/events", "/v1/submissions/{id}/logs"];

/// Returns whether a route is one of the resource API that pages link to.
pub(super) fn is_linked(route: Option<&str>) -> bool {
    route.is_some_and(|route| OPENED_BY_USERS.contains(&route))
}

/// Returns the session's cookie of a request, if it counts for it.
pub(super) fn of_request<'a>(
    (method, route, headers): (&Method, Option<&str>, &'a HeaderMap),
    face: Face,
    is_https: bool,
) -> Option<SessionCookie<'a>> {
    let is_own = is_of_own_page(headers);
    let counts = match face {
        Face::Console if method.is_safe() => is_own || is_opened(headers),
        Face::Console => is_own,
        Face::Resources => route.filter(|_| method.is_safe()).is_some_and(|route| {
            is_own && READ_BY_PAGES.contains(&route) || is_linked(Some(route)) && (is_own || is_opened(headers))
        }),
        Face::Kubeflow | Face::Livy | Face::Spark => false,
    };
    let value = value(headers, SESSION, is_https).filter(|_| counts)?;
    Some(SessionCookie { value, is_use: !is_of_script(headers) })
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn a_session_counts_for_pages_that_users_open_and_for_requests_of_own_pages() {
        let site = |value| ("sec-fetch-site", value);
        let opened = ("sec-fetch-mode", "navigate");
        let events = Some("/v1/events");
        let ui = Some("/v1/submissions/{id}/ui/{*path}");
        for (face, method, route, extra, expected) in [
            (Face::Console, Method::GET, None, vec![], true),
            (Face::Console, Method::GET, None, vec![site("none"), opened], true),
            (Face::Console, Method::GET, None, vec![site("cross-site"), opened], true),
            (Face::Console, Method::GET, None, vec![site("same-origin")], true),
            (Face::Console, Method::GET, None, vec![site("same-site"), ("sec-fetch-mode", "no-cors")], false),
            (Face::Console, Method::GET, None, vec![site("cross-site"), ("sec-fetch-mode", "cors")], false),
            (Face::Console, Method::POST, None, vec![site("same-origin")], true),
            (Face::Console, Method::POST, None, vec![site("same-site"), opened], false),
            (Face::Console, Method::POST, None, vec![site("cross-site"), opened], false),
            (Face::Console, Method::POST, None, vec![site("none"), opened], false),
            (Face::Console, Method::POST, None, vec![], false),
            (Face::Resources, Method::GET, events, vec![site("same-origin")], true),
            (Face::Resources, Method::GET, Some("/v1/submissions/{id}/logs"), vec![site("same-origin")], true),
            (Face::Resources, Method::GET, events, vec![], false),
            (Face::Resources, Method::GET, events, vec![site("same-site"), opened], false),
            (Face::Resources, Method::GET, events, vec![site("none"), opened], false),
            (Face::Resources, Method::GET, Some("/v1/submissions"), vec![site("same-origin")], false),
            (Face::Resources, Method::GET, ui, vec![site("same-origin"), opened], true),
            (Face::Resources, Method::GET, ui, vec![site("cross-site"), opened], true),
            (Face::Resources, Method::GET, ui, vec![site("cross-site"), ("sec-fetch-mode", "cors")], false),
            (Face::Resources, Method::POST, ui, vec![site("same-origin"), opened], false),
            (Face::Resources, Method::POST, events, vec![site("same-origin")], false),
            (Face::Spark, Method::POST, None, vec![site("same-origin")], false),
            (Face::Livy, Method::GET, None, vec![site("same-origin")], false),
            (Face::Kubeflow, Method::POST, None, vec![site("same-origin")], false),
        ] {
            let headers = headers(&[vec![("cookie", "sparkgate-session=x")], extra].concat());
            let counts = of_request((&method, route, &headers), face, false).is_some();
            assert_eq!(counts, expected, "{face:?} {method} {headers:?}");
        }
    }

    #[test]
    fn what_a_page_sends_by_itself_is_no_use() {
        for (destination, expected) in [("document", true), ("empty", false)] {
            let headers = headers(&[
                ("cookie", "sparkgate-session=x"),
                ("sec-fetch-site", "same-origin"),
                ("sec-fetch-dest", destination),
            ]);
            let cookie = of_request((&Method::GET, None, &headers), Face::Console, false).unwrap();
            assert_eq!(cookie.is_use, expected, "{destination}");
        }
    }
}
