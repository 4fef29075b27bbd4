//! Rewrites the paths in the values of a driver's `spark.properties`; everything else is kept.
//!
//! Spark writes the file with `java.util.Properties`: one property per line; `=`, `:`, `#`, `!` and backslash are escaped.

use super::paths::PathMap;

/// Keys for other pods, whose paths are rewritten when such a pod starts, with its own mounts.
const ABOUT_OTHER_PODS: [&str; 6] = [
    "spark.executor.",
    "spark.executorEnv.",
    "spark.kubernetes.driver.volumes.",
    "spark.kubernetes.driver.secrets.",
    "spark.kubernetes.executor.volumes.",
    "spark.kubernetes.executor.secrets.",
];

/// Rewrites the values of a properties file. Lines that don't change are kept byte for byte.
pub(super) fn translate(text: &str, paths: &PathMap) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match translated(line.trim_end_matches('\n'), paths) {
            Some(changed) => {
                out.push_str(&changed);
                out.push('\n');
            }
            None => out.push_str(line),
        }
    }
    out
}

/// Returns the value of a key, unescaped and trimmed as Spark's parser does.
pub(super) fn get(text: &str, key: &str) -> Option<String> {
    text.lines().filter_map(split).find(|(k, _)| unescape(k) == key).map(|(_, value)| unescape(value).trim().to_owned())
}

fn translated(line: &str, paths: &PathMap) -> Option<String> {
    let (key, value) = split(line)?;
    if ABOUT_OTHER_PODS.iter().any(|prefix| unescape(key).starts_with(prefix)) {
        return None;
    }
    let value = unescape(value);
    let changed = paths.translate(&value);
    (changed != value).then(|| format!("{key}={}", escape(&changed)))
}

fn split(line: &str) -> Option<(&str, &str)> {
    if line.starts_with(['#', '!']) {
        return None;
    }
    let mut escaped = false;
    for (at, c) in line.char_indices() {
        match c {
            '\\' => escaped = !escaped,
            '=' if !escaped => return Some((&line[..at], &line[at + 1..])),
            _ => escaped = false,
        }
    }
    None
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some('t')) => out.push('\t'),
            ('\\', Some('n')) => out.push('\n'),
            ('\\', Some('r')) => out.push('\r'),
            ('\\', Some('f')) => out.push('\u{c}'),
            ('\\', Some(other)) => out.push(other),
            (other, _) => out.push(other),
        }
    }
    out
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for (at, c) in text.char_indices() {
        match c {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\u{c}' => out.push_str("\\f"),
            '\\' | '=' | ':' | '#' | '!' => out.extend(['\\', c]),
            ' ' if at == 0 => out.push_str("\\ "),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn escaped_values_are_translated_and_escaped_again() {
        let mut paths = PathMap::default();
        paths.insert("/opt/spark", Path::new("/home/a=b"));
        let text = "#Java properties\nspark.jars=local\\:///opt/spark/a.jar,x\nspark.app.name=p\\=1 \n\
                    spark.executor.extraClassPath=/opt/spark/x\nspark.kubernetes.driver.volumes.hostPath.d.mount.path=/opt/spark\n";
        let expected = "#Java properties\nspark.jars=local\\:///home/a\\=b/a.jar,x\nspark.app.name=p\\=1 \n\
                    spark.executor.extraClassPath=/opt/spark/x\nspark.kubernetes.driver.volumes.hostPath.d.mount.path=/opt/spark\n";
        assert_eq!(translate(text, &paths), expected);
    }

    #[test]
    fn a_value_is_unescaped_and_trimmed() {
        let text = "# c\na\\=b=local\\:///x \nspark.driver.host=svc.ns.svc\n";
        assert_eq!(get(text, "a=b").as_deref(), Some("local:///x"));
        assert_eq!(get(text, "spark.driver.host").as_deref(), Some("svc.ns.svc"));
        assert_eq!(get(text, "# c"), None);
    }
}
