//! Text in the format of Java properties, in which Spark passes its configuration to the driver.

use std::{collections::BTreeMap, fmt::Write};

use chrono::{DateTime, Utc};

use crate::defaults::parse_properties;

/// Writes the file `spark.properties`: two comment lines, then one line `key=value` for each property.
///
/// Escapes are those of `java.util.Properties.store(Writer, …)`, which Spark uses: non-ASCII text stays as it is.
pub(crate) fn file<'a>(
    config_map: &str,
    written_at: DateTime<Utc>,
    properties: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let mut text = format!("#Java properties built from Kubernetes config map with name: {config_map}\n");
    let _ = writeln!(text, "#{}", written_at.format("%a %b %d %H:%M:%S UTC %Y"));
    for (key, value) in properties {
        write_line(&mut text, key, value);
    }
    text
}

fn write_line(text: &mut String, key: &str, value: &str) {
    escape(text, key, Spaces::Every);
    text.push('=');
    escape(text, value, Spaces::Leading);
    text.push('\n');
}

/// Returns a file `spark.properties` with these properties set, or removed if they have no value. All other lines stay as they are.
///
/// The file must be one that a driver was built with: it has one line for each property.
pub fn with_properties(file: &str, set: &BTreeMap<String, Option<String>>) -> String {
    let is_replaced = |line: &str| parse_properties(line).keys().any(|key| set.contains_key(key));
    let mut text: String = file.split_inclusive('\n').filter(|line| !is_replaced(line)).collect();
    for (key, value) in set {
        if let Some(value) = value {
            write_line(&mut text, key, value);
        }
    }
    text
}

/// The spaces that need a backslash: all spaces of a key, but only a leading space of a value.
#[derive(Clone, Copy, PartialEq)]
enum Spaces {
    Every,
    Leading,
}

fn escape(out: &mut String, text: &str, spaces: Spaces) {
    for (index, c) in text.chars().enumerate() {
        match c {
            ' ' if index == 0 || spaces == Spaces::Every => out.push_str("\\ "),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\u{c}' => out.push_str("\\f"),
            '\\' | '=' | ':' | '#' | '!' => out.extend(['\\', c]),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests;
