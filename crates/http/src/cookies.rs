//! The cookies of browsers that sign in.

use axum::http::{HeaderMap, HeaderValue, header};

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
    fn a_cookie_is_for_this_host_only_and_not_for_scripts() {
        let cookie =
            |value, is_https, max_age| set(SESSION, value, is_https, max_age).unwrap().to_str().unwrap().to_owned();
        assert_eq!(cookie("x", true, None), "__Host-sparkgate-session=x; Path=/; HttpOnly; SameSite=Lax; Secure");
        assert_eq!(cookie("x", false, Some(600)), "sparkgate-session=x; Path=/; HttpOnly; SameSite=Lax; Max-Age=600");
        assert!(cookie("", true, None).ends_with("Secure; Max-Age=0"));
    }
}
