//! The cookies of browsers that sign in.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderValue, header, uri::Authority};

/// The cookie of a session, and that of a sign-in until its answer.
pub(super) const SESSION: &str = "sparkgate-session";
pub(super) const SIGN_IN: &str = "sparkgate-sign-in";

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

/// Returns the value of the cookie of a browser's session, and whether it is one of HTTPS. `is_https` says how browsers that sign in reach
/// the gateway. Where that isn't known, because they sign in with API keys, a cookie without the prefix counts at a loopback host only,
/// where no neighbour can set it.
pub(super) fn session(headers: &HeaderMap, is_https: Option<bool>) -> Option<(&str, bool)> {
    let find = |is_https| value(headers, SESSION, is_https).map(|value| (value, is_https));
    match is_https {
        Some(is_https) => find(is_https),
        None => find(true).or_else(|| find(false).filter(|_| is_at_loopback(headers))),
    }
}

fn is_at_loopback(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| Authority::try_from(host.as_bytes()).ok());
    host.is_some_and(|host| {
        let name = host.host().trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
        let is_loopback = |address: IpAddr| address.is_loopback();
        name == "localhost" || name.ends_with(".localhost") || name.parse().is_ok_and(is_loopback)
    })
}

/// Returns the header that sets a cookie; an empty value deletes it. Without `max_age` it lasts until the browser ends.
pub(super) fn set(base: &str, value: &str, is_https: bool, max_age: Option<u32>) -> Option<HeaderValue> {
    let max_age = if value.is_empty() { Some(0) } else { max_age };
    let max_age = max_age.map(|seconds| format!("; Max-Age={seconds}")).unwrap_or_default();
    let secure = if is_https { "; Secure" } else { "" };
    let text = format!("{}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{max_age}", name(base, is_https));
    HeaderValue::try_from(text).ok()
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
    fn a_session_without_a_known_scheme_is_one_of_https_or_of_a_loopback_host() {
        for (host, cookies, expected) in [
            ("gate.example.org", "sparkgate-session=x; __Host-sparkgate-session=y", Some(("y", true))),
            ("gate.example.org", "sparkgate-session=x", None),
            ("localhost:6066", "sparkgate-session=x", Some(("x", false))),
            ("127.0.0.1:6066", "sparkgate-session=x", Some(("x", false))),
            ("[::1]:6066", "sparkgate-session=x", Some(("x", false))),
            ("127.0.0.1.example.org", "sparkgate-session=x", None),
        ] {
            assert_eq!(session(&headers(&[("host", host), ("cookie", cookies)]), None), expected, "{host} {cookies}");
        }
        assert_eq!(session(&headers(&[("host", "localhost"), ("cookie", "sparkgate-session=x")]), Some(true)), None);
    }

    #[test]
    fn a_cookie_is_for_this_host_only_and_not_for_scripts() {
        let cookie =
            |value, is_https, max_age| set(SESSION, value, is_https, max_age).unwrap().to_str().unwrap().to_owned();
        assert_eq!(cookie("x", true, None), "__Host-sparkgate-session=x; Path=/; HttpOnly; SameSite=Lax; Secure");
        assert_eq!(cookie("x", false, Some(600)), "sparkgate-session=x; Path=/; HttpOnly; SameSite=Lax; Max-Age=600");
        assert!(cookie("", true, None).ends_with("Secure; Max-Age=0"));
    }
}
