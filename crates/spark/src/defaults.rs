//! Parses the `spark-defaults.conf` of a gateway's operator.

use std::{borrow::Cow, collections::BTreeMap};

/// Parses a `spark-defaults.conf`, a text in the format of `java.util.Properties`. As Spark does, it keeps the keys that begin
/// with `spark.` and trims the values (`org.apache.spark.util.Utils.getPropertiesFromFile`).
pub fn parse_properties(text: &str) -> BTreeMap<String, String> {
    logical_lines(text)
        .iter()
        .map(|line| {
            let (key, value) = split(line.as_ref());
            (unescape(key), unescape(value).trim_matches(|c: char| c <= ' ' && c != '\r' && c != '\n').to_owned())
        })
        .filter(|(key, _)| key.starts_with("spark."))
        .collect()
}

/// Returns the logical lines without comments and blank lines; an odd number of backslashes at the end continues a line.
fn logical_lines(text: &str) -> Vec<Cow<'_, str>> {
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    let mut continued = false;
    for line in text.lines() {
        let line = line.trim_start_matches([' ', '\t', '\u{c}']);
        if !continued && (line.is_empty() || line.starts_with(['#', '!'])) {
            continue;
        }
        let backslashes = line.len() - line.trim_end_matches('\\').len();
        let continues = backslashes % 2 == 1;
        let line = if continues { &line[..line.len() - 1] } else { line };
        match lines.last_mut() {
            Some(last) if continued => last.to_mut().push_str(line),
            _ => lines.push(line.into()),
        }
        continued = continues;
    }
    lines
}

/// Splits at the first unescaped `=`, `:` or blank; blanks around a separator belong to neither side.
fn split(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|c: char| {
        let separator = !escaped && matches!(c, '=' | ':' | ' ' | '\t' | '\u{c}');
        escaped = !escaped && c == '\\';
        separator
    });
    let Some(end) = end else { return (line, "") };
    let blank = [' ', '\t', '\u{c}'];
    let rest = line[end..].trim_start_matches(blank);
    let value = rest.strip_prefix(['=', ':']).unwrap_or(rest).trim_start_matches(blank);
    (&line[..end], value)
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((plain, escaped)) = rest.split_once('\\') {
        out.push_str(plain);
        let mut chars = escaped.chars();
        match chars.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('f') => out.push('\u{c}'),
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                out.push(code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => out.push(other),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_parsed_as_java_parses_them() {
        let text = "# a comment\n! another\n\nspark.a  1 \nspark.b=x=y\nspark.c : two\\\n   words\nother.key 1\n\
                    spark.d\\ e = \\u00e9\\t!\nspark.empty\nspark.path C:\\\\tmp\n";
        let read = parse_properties(text);
        let expected = [
            ("spark.a", "1"),
            ("spark.b", "x=y"),
            ("spark.c", "twowords"),
            ("spark.d e", "é\t!"),
            ("spark.empty", ""),
            ("spark.path", "C:\\tmp"),
        ];
        assert_eq!(read, expected.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
    }
}
