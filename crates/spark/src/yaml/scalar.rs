//! Resolves plain scalars by YAML's JSON schema, as Spark's parser does: `yes`, `~`, `0x1F` and `010` are strings.

use granit_parser::{ScalarStyle, Tag};
use serde_json::{Number, Value};

use super::error::{YamlError, shortened};
use crate::conf::double_text;

/// Returns the value of a scalar. Without a tag, a quoted scalar is always a string.
pub(super) fn resolve(text: &str, style: ScalarStyle, tag: Option<&Tag>, line: usize) -> Result<Value, YamlError> {
    let Some(tag) = tag else {
        return Ok(match style {
            ScalarStyle::Plain => plain(text),
            _ => text.into(),
        });
    };
    let resolved = plain(text);
    let fits = match tag.core_suffix() {
        Some("str" | "binary") => return Ok(text.into()),
        Some("null") => resolved.is_null(),
        Some("bool") => resolved.is_boolean(),
        Some("int") => resolved.is_i64() || resolved.is_u64(),
        Some("float") => resolved.is_number(),
        _ => false,
    };
    if fits { Ok(resolved) } else { Err(YamlError::Tag { tag: shortened(&tag.original()), line }) }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        "-0" => 0.into(),
        _ => number(text).map_or_else(|| text.into(), Value::Number),
    }
}

/// Parses a number in JSON's grammar, hence with `serde_json`. Integers that don't fit stay strings.
fn number(text: &str) -> Option<Number> {
    let number: Number = text.parse().ok()?;
    let whole = !text.contains(['.', 'e', 'E']);
    (whole != number.is_f64()).then_some(number)
}

/// Returns a single value as text, as Java writes it. `None` for null, lists and maps.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(word) => Some(word.to_string()),
        Value::Number(number) if number.is_f64() => number.as_f64().map(double_text),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
