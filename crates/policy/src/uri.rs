//! Addresses of applications and their dependencies, in a normal form.

use percent_encoding::percent_decode_str;

use crate::pattern;

/// Returns `scheme://host/path` of an address: scheme and host in lower case, escapes decoded, `.` and `..` resolved, query and
/// fragment dropped.
///
/// # Errors
/// The reason why an address can't be judged. What two programs could read differently is refused.
pub(crate) fn normal(uri: &str) -> Result<String, String> {
    let (scheme, rest) = uri.split_once(':').ok_or("it has no scheme")?;
    let starts = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    if !starts || !scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')) {
        return Err("it has no scheme".to_owned());
    }
    if uri.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') {
        return Err("it has white space, a control character or a backslash".to_owned());
    }
    let rest = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let (host, path) = match rest.strip_prefix("//") {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    if host.contains('@') {
        return Err("it has a user or a password".to_owned());
    }
    if !host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']')) {
        return Err("its host has unusual characters".to_owned());
    }
    if !path.is_empty() && !path.starts_with('/') {
        return Err("its path is relative".to_owned());
    }
    let decoded = percent_decode_str(path).decode_utf8().map_err(|_| "its path is not UTF-8".to_owned())?;
    if decoded.contains(|c: char| c.is_control() || c == '\\') {
        return Err("it has an escaped control character or backslash".to_owned());
    }
    let lower = decoded.to_ascii_lowercase();
    if ["%2e", "%2f", "%5c", "%25"].iter().any(|escape| lower.contains(escape)) {
        return Err("it is escaped twice".to_owned());
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in decoded.split('/').skip(1) {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop().ok_or("it leaves its root by `..`")?;
            }
            segment => segments.push(segment),
        }
    }
    Ok(format!("{}://{}/{}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase(), segments.join("/")))
}

/// Returns a pattern for addresses as a regular expression.
pub(crate) fn pattern(pattern: &str) -> Result<String, String> {
    let (scheme, rest) =
        pattern.split_once("://").ok_or("a pattern of addresses has a scheme, such as s3a://bucket/**")?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if scheme.contains('*') || path.split('/').any(|segment| segment == "..") {
        return Err("its scheme must have no `*`, and its path no `..`".to_owned());
    }
    let lower = format!("{}://{}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase());
    // A host is one segment: even `**` doesn't reach beyond it.
    let host = pattern::expression(&lower.replace("**", "*"));
    Ok(match path {
        "" => format!("{host}/.*"),
        path => format!("{host}{}", pattern::expression(path)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::Patterns;

    fn matches(text: &str, uri: &str) -> bool {
        let mut faults = Vec::new();
        let patterns = Patterns::compile_with(&[text.to_owned()], "resources", &mut faults, pattern);
        assert!(faults.is_empty(), "{faults:?}");
        normal(uri).is_ok_and(|uri| patterns.matches(&uri))
    }

    #[test]
    fn spellings_of_one_address_are_the_same() {
        for uri in [
            "s3a://team/a/b.jar",
            "S3A://TEAM/a/b.jar",
            "s3a://team//a/./b.jar",
            "s3a://team/x/../a/b.jar",
            "s3a://team/%61/b.jar?x=1#y",
            "s3a://team/x/%2e%2e/a/b.jar",
        ] {
            assert_eq!(normal(uri).as_deref(), Ok("s3a://team/a/b.jar"), "{uri}");
        }
        assert_eq!(normal("local:/a.jar"), normal("local:///a.jar"));
    }

    #[test]
    fn an_address_with_two_readings_is_refused() {
        for uri in [
            "a.jar",
            "/a.jar",
            "s3a://user:key@team/a",
            "s3a://team@evil/a",
            "s3a://team/../../a",
            "s3a://team/%252e%252e/a",
            "s3a://team\\@evil/a",
            "s3a://team/%5c..",
            "s3a://te%61m/a",
            "s3a:team/a",
            "s3a://team/a%0a",
            "s3a://team/a b",
            "1s://a/b",
            "s3a://team/%ff",
        ] {
            assert!(normal(uri).is_err(), "{uri}");
        }
    }

    #[test]
    fn a_pattern_covers_a_bucket_and_not_its_neighbours() {
        assert!(matches("s3a://team/**", "s3a://team/a/b") && matches("s3a://team", "s3a://team/a/b"));
        assert!(matches("s3a://team-*/**", "s3a://team-a/x") && matches("local:///**", "local:/opt/a.jar"));
        assert!(!matches("s3a://team/**", "s3a://team2/a") && !matches("s3a://team/**", "s3://team/a"));
        assert!(
            !matches("s3a://team/**", "s3a://team/../other/a")
                && !matches("s3a://team/jars/**", "s3a://team/jars/../x")
        );
        assert!(!matches("https://**/a", "https://evil/b/a"), "a host is one segment");
        assert!(!matches("s3a://team/*", "s3a://team/a/b"));
    }
}
