//! The cookies of browsers that sign in, and the requests for which a session's cookie counts: those of the console, what its pages read
//! of the resource API by themselves, and the Spark UI, which they link to.
//!
//! A browser adds cookies to requests whichever page sends them. `SameSite=Lax` keeps them from pages of other sites, but not from
//! those of neighbours such as another name below `example.org`. So a request must say itself that it comes from a page of this
//! gateway, in `Sec-Fetch-Site`, which scripts can't set and each browser of the last years sends. Only a page that a user opens
//! counts without it.

use axum::http::{HeaderMap, HeaderValue, Method, header};

use super::faces::Face;
use crate::service::SessionCookie;

/// The cookie of a session, and that of a sign-in until its answer.
pub(super) const SESSION: &str = "sparkgate-session";
pub(super) const SIGN_IN: &str = "sparkgate-sign-in";

/// What the pages link to: the Spark UI of a submission, which leads back here when its ticket has expired.
const OPENED_BY_USERS: [&str; 3] =
    ["/v1/submissions/{id}/ui", "/v1/submissions/{id}/ui/", "/v1/submissions/{id}/ui/{*path}"];
/// What the pages read by scripts.
const READ_BY_PAGES: [&str; 2] = ["/v1/events", "/v1/submissions/{id}/logs"];

/// Returns the name of a cookie. With the prefix `__Host-`, browsers take it only from this very host, and over HTTPS.
fn name(base: &str, is_https: bool) -> String {
    if is_https { format!("__Host-{base}") } else { base.to_owned() }
}

/// Returns the value of a cookie. Of two with one name, one may be of a neighbour, so neither counts.
pub(super) fn value<'a>(headers: &'a HeaderMap, base: &str, is_https: bool) -> Option<&'a str> {
    let name = name(base, is_https);
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(found, _)| *found == name).map(|(_, value)| value);
    let first = values.next();
    first.filter(|_| values.next().is_none())
}

/// Returns the header that sets a cookie; an empty value deletes it. Without `max_age` it lasts until the browser ends.
pub(super) fn set(base: &str, value: &str, is_https: bool, max_age: Option<u32>) -> Option<HeaderValue> {
    let max_age = if value.is_empty() { Some(0) } else { max_age };
    let max_age = max_age.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
    let secure = if is_https { "; Secure" } else { "" };
    let text = format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{max_age}", name(base, is_https));
    HeaderValue::try_from(text).ok()
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
            is_own && READ_BY_PAGES.contains(&route)
                || OPENED_BY_USERS.contains(&route) && (is_own || is_opened(headers))
        }),
        Face::Kubeflow | Face::Livy | Face::Spark => false,
    };
    let value = value(headers, SESSION, is_https).filter(|_| counts)?;
    Some(SessionCookie { value, is_use: text(headers, "sec-fetch-dest") != Some("empty") })
}

/// Returns whether a page of this gateway sends the request.
pub(super) fn is_of_own_page(headers: &HeaderMap) -> bool {
    text(headers, "sec-fetch-site") == Some("same-origin")
}

/// Returns whether a user opens a page: by its address, or by a link of any site.
fn is_opened(headers: &HeaderMap) -> bool {
    match text(headers, "sec-fetch-site") {
        None | Some("none") => true,
        Some(_) => text(headers, "sec-fetch-mode") == Some("navigate"),
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_str(value).unwrap())).collect()
    }

    #[test]
    fn a_cookie_is_found_by_its_whole_name_and_once() {
        let find =
            |cookies: &str, is_https| value(&headers(&[("cookie", cookies)]), SESSION, is_https).map(str::to_owned);
        assert_eq!(find("a=b; sparkgate-session=x; c=d", false).as_deref(), Some("x"));
        assert_eq!(find("__Host-sparkgate-session=x", true).as_deref(), Some("x"));
        assert_eq!(find("sparkgate-session=x", true), None, "a neighbour may have set it");
        assert_eq!(find("__Host-sparkgate-session=x", false), None);
        assert_eq!(find("sparkgate-session=x; sparkgate-session=y", false), None);
        assert_eq!(find("xsparkgate-session=x; sparkgate-session", false), None);
    }

    #[test]
    fn a_cookie_is_for_this_host_only_and_not_for_scripts() {
        let cookie =
            |value, is_https, max_age| set(SESSION, value, is_https, max_age).unwrap().to_str().unwrap().to_owned();
        assert_eq!(cookie("x", true, None), "__Host-sparkgate-session=x; Path=/; HttpOnly; SameSite=Lax; Secure");
        assert_eq!(cookie("x", false, Some(600)), "sparkgate-session=x; Path=/; HttpOnly; SameSite=Lax; Max-Age=600");
        assert!(cookie("", true, None).ends_with("Secure; Max-Age=0"));
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
