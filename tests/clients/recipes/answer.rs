//! Compares a reply with the one that a page prints.

use serde_json::Value;

/// Returns the difference, if there is one.
pub(super) fn compare(printed: &str, said: &str) -> Result<(), String> {
    let (printed_head, printed_body) = apart(printed);
    let (head, body) = apart(said);
    let expected = json(&printed_body.replace(", …}", "}").replace("{ …}", "{}").replace("{…}", "{}"));
    let actual = json(body);
    if printed_head.is_empty() && expected.is_none() && actual.as_ref().is_some_and(is_error) {
        return Err("it is an error".to_owned());
    }
    let mut lines = printed_head.lines();
    if let Some(status) = lines.next()
        && head.lines().next().map(str::trim) != Some(status)
    {
        return Err(format!("the status isn't {status}"));
    }
    for line in lines {
        let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
        if !head.lines().any(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:"))) {
            return Err(format!("there is no header {name}"));
        }
    }
    match (expected, actual) {
        (Some(expected), Some(actual)) => shape("", &expected, &actual),
        (Some(_), None) => Err("it is not JSON".to_owned()),
        (None, _) => words(printed_body, body),
    }
}

/// Splits the output of curl into the head of the reply, if curl printed it, and its body.
fn apart(text: &str) -> (&str, &str) {
    if !text.starts_with("HTTP/") {
        return ("", text);
    }
    text.split_once("\r\n\r\n").or_else(|| text.split_once("\n\n")).unwrap_or((text, ""))
}

fn json(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok().filter(|value: &Value| value.is_object() || value.is_array())
}

/// Returns whether it is a problem, or an error of Spark's protocol.
fn is_error(answer: &Value) -> bool {
    answer["action"] == "ErrorResponse" || (answer["code"].is_string() && answer["requestId"].is_string())
}

/// Checks that all printed fields are there, with the same type. Of a list only the first item counts.
fn shape(place: &str, printed: &Value, said: &Value) -> Result<(), String> {
    match (printed, said) {
        (Value::Object(printed), Value::Object(said)) => printed.iter().try_for_each(|(key, value)| {
            let place = format!("{place}/{key}");
            let there = said.get(key).ok_or_else(|| format!("{place} is missing"))?;
            // A final state, a problem or a class is what the page demonstrates; a state in between may have passed
            // already.
            let is_word = ["code", "class", "kind", "action", "success", "status"].contains(&key.as_str());
            let is_end = key == "state" && ["FINISHED", "KILLED"].iter().any(|state| value == state);
            if (is_word || is_end) && value != there {
                return Err(format!("{place} is {there}, not {value}"));
            }
            shape(&place, value, there)
        }),
        (Value::Array(printed), Value::Array(said)) => match (printed.first(), said.first()) {
            (Some(first), Some(there)) => shape(&format!("{place}/0"), first, there),
            (Some(_), None) => Err(format!("{place} is empty")),
            (None, _) => Ok(()),
        },
        (printed, said) if std::mem::discriminant(printed) == std::mem::discriminant(said) => Ok(()),
        (printed, said) => Err(format!("{place} is {said}, of another kind than {printed}")),
    }
}

/// Compares the words of the first printed line; numbers, names and times differ each time.
fn words(printed: &str, said: &str) -> Result<(), String> {
    let first = printed.lines().next().unwrap_or_default();
    let words = first.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic));
    let missing: Vec<&str> = words.filter(|word| !said.contains(word)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("it doesn't say {missing:?}")) }
}
