//! Writes templates as YAML in block style, with plain scalars where these are read back as the same value.

use std::fmt::Write;

use serde_json::Value;

/// Returns a value as YAML.
pub(super) fn block(value: &Value) -> String {
    let mut text = String::new();
    write(&mut text, value, 0);
    text
}

fn write(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                let _ = write!(text, "{indent}{}:", scalar(&Value::from(key.as_str())));
                nested(text, value, depth);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            for value in list {
                let _ = write!(text, "{indent}-");
                nested(text, value, depth);
            }
        }
        other => {
            let _ = writeln!(text, "{indent}{}", scalar(other));
        }
    }
}

fn nested(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            text.push('\n');
            write(text, value, depth + 1);
        }
        Value::Array(list) if !list.is_empty() => {
            text.push('\n');
            write(text, value, depth + 1);
        }
        other => {
            let _ = writeln!(text, " {}", scalar(other));
        }
    }
}

fn scalar(value: &Value) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    match value {
        // A word of letters that is no boolean, no null and no number.
        Value::String(text)
            if text.len() > 5 && text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(plain) =>
        {
            text.clone()
        }
        other => other.to_string(),
    }
}
