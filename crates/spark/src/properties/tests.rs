use std::collections::BTreeMap;

use chrono::{TimeZone, Utc};
use proptest::prelude::*;

use super::{file, with_properties};

fn written(properties: &[(&str, &str)]) -> String {
    let moment = Utc.with_ymd_and_hms(2026, 11, 2, 3, 4, 5).unwrap();
    file("spark-drv-1-conf-map", moment, properties.iter().copied())
}

#[test]
fn the_header_has_the_config_map_and_the_time() {
    let expected = "#Java properties built from Kubernetes config map with name: spark-drv-1-conf-map\n\
                    #Mon Nov 02 03:04:05 UTC 2026\na=b\n";
    assert_eq!(written(&[("a", "b")]), expected);
}

#[test]
fn special_characters_are_escaped_as_java_does() {
    let text =
        written(&[("spark. key:with", "eq=1"), ("spark.odd", "é☃=:#! \\ end "), ("spark.lead", "  two\n\t\r\u{c}")]);
    let lines: Vec<&str> = text.lines().skip(2).collect();
    assert_eq!(lines[0], r"spark.\ key\:with=eq\=1");
    assert_eq!(lines[1], r"spark.odd=é☃\=\:\#\! \\ end ");
    assert_eq!(lines[2], r"spark.lead=\  two\n\t\r\f");
}

#[test]
fn properties_that_are_set_or_removed_replace_lines_of_the_same_key() {
    let before = written(&[("spark.a", "1"), ("spark.a.b", "x=y"), ("spark.gone", "3"), ("spark.odd key", "2")]);
    let set = [("spark.a", Some("8")), ("spark.odd key", Some("9")), ("spark.new", Some(" z")), ("spark.gone", None)];
    let set = set.map(|(key, value)| (key.to_owned(), value.map(str::to_owned))).into();
    let header: Vec<&str> = before.lines().take(2).collect();
    let after = with_properties(&before, &set);
    let lines: Vec<&str> = after.lines().collect();
    assert_eq!(lines[..2], header[..]);
    assert_eq!(lines[2..], [r"spark.a.b=x\=y", "spark.a=8", r"spark.new=\ z", r"spark.odd\ key=9"]);
    assert_eq!(with_properties(&after, &set), after);
}

proptest! {
    #[test]
    fn properties_that_are_written_can_be_read_back(properties in prop::collection::btree_map("[^\0]{1,12}", "[^\0]{0,20}", 0..6)) {
        let text = file("m", Utc::now(), properties.iter().map(|(k, v)| (k.as_str(), v.as_str())));
        prop_assert_eq!(read(&text), properties);
    }
}

/// Reads properties by the specification of `java.util.Properties.load`: natural lines, comments, separators, escapes.
fn read(text: &str) -> BTreeMap<String, String> {
    let logical = text.split(['\n', '\r']).map(|line| line.trim_start_matches([' ', '\t', '\u{c}']));
    logical.filter(|line| !line.is_empty() && !line.starts_with(['#', '!'])).map(entry).collect()
}

fn entry(line: &str) -> (String, String) {
    let mut parts = [String::new(), String::new()];
    let (mut part, mut chars) = (0, line.chars().peekable());
    while let Some(c) = chars.next() {
        match c {
            '\\' => parts[part].extend(chars.next().map(unescaped)),
            '=' | ':' | ' ' | '\t' | '\u{c}' if part == 0 => {
                part = 1;
                let mut separated = c == '=' || c == ':';
                while let Some(next) = chars.peek().copied() {
                    let blank = matches!(next, ' ' | '\t' | '\u{c}');
                    if !blank && (separated || !matches!(next, '=' | ':')) {
                        break;
                    }
                    separated |= !blank;
                    chars.next();
                }
            }
            other => parts[part].push(other),
        }
    }
    let [key, value] = parts;
    (key, value)
}

fn unescaped(c: char) -> char {
    match c {
        't' => '\t',
        'n' => '\n',
        'r' => '\r',
        'f' => '\u{c}',
        other => other,
    }
}
