//! Parses the body of a create request into a [`CreateSubmissionRequest`].

use std::{collections::HashSet, fmt::Display};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    action,
    coerce::{self, Entries, Texts},
    error::RequestError,
    validate::{self, Fields},
};
use crate::{
    redaction::{REDACTED, has_secret_words},
    refusal::Refusal,
    request::CreateSubmissionRequest,
    version::SparkVersion,
    yaml,
};

/// Maximum number of bytes of a template as it is written in the request, with blanks and escapes. The limit of the template
/// itself is lower.
pub const MAX_TEMPLATE: usize = 2 * yaml::MAX_BYTES;

/// Parses a create request as Spark's server does: the content type is ignored, and so is everything after the first JSON
/// value. The second part of the result is the reply's `unknownFields`.
///
/// # Errors
/// A [`RequestError`], whose text is sent to the client.
pub fn parse_create(
    body: &[u8],
    version: SparkVersion,
) -> Result<(CreateSubmissionRequest, Vec<String>), RequestError> {
    parse_create_of(body, version, version)
}

/// Does the same for a server that also serves other releases: the request has the form that `server` expects, and values
/// of the release `values`.
///
/// # Errors
/// A [`RequestError`].
pub fn parse_create_of(
    body: &[u8],
    server: SparkVersion,
    values: SparkVersion,
) -> Result<(CreateSubmissionRequest, Vec<String>), RequestError> {
    let json = text(body)?;
    let entries = entries(body)?.ok_or_else(|| no_action(json))?;
    // Spark uses the first `action`, although it uses the last value of every other field.
    let action = entries.iter().find(|(key, value)| key == "action" && value.get().starts_with('"'));
    let (_, action) = action.ok_or_else(|| no_action(json))?;
    let action: String = coerce::parse(action, "[\"action\"]")?;
    if action != "CreateSubmissionRequest" {
        return Err(other_message(action, &entries, server));
    }
    let (fields, unknown) = read(&entries, server)?;
    validate::as_spark_does(&fields, server, values)?;
    Ok((validate::finish(fields)?, unknown))
}

/// Parses a handwritten request, for `sparkgate render`: missing fields are empty, and no `action` is needed. The values are
/// checked as those of any other request. The second part of the result names the unknown fields.
///
/// # Errors
/// A [`RequestError`].
pub fn parse_partial(
    body: &[u8],
    version: SparkVersion,
) -> Result<(CreateSubmissionRequest, Vec<String>), RequestError> {
    let not_an_object = || RequestError::invalid("The request is not a JSON object.");
    let entries = entries(body)?.ok_or_else(not_an_object)?;
    let (fields, unknown) = read(&entries, version)?;
    validate::values(&fields, version)?;
    Ok((validate::finish(fields)?, unknown))
}

fn text(body: &[u8]) -> Result<&str, RequestError> {
    std::str::from_utf8(body).map_err(|error| RequestError::Syntax(format!("Invalid UTF-8: {error}")))
}

/// Returns the first JSON value of a body. Spark ignores what follows.
///
/// # Errors
/// A [`RequestError`].
pub fn first_value(body: &[u8]) -> Result<&RawValue, RequestError> {
    let json = text(body)?;
    if json.trim_start_matches([' ', '\t', '\r', '\n']).is_empty() {
        return Err(RequestError::Empty);
    }
    check_depth(json.as_bytes())?;
    let mut values = serde_json::Deserializer::from_str(json);
    <&RawValue>::deserialize(&mut values).map_err(|error| RequestError::json(&error))
}

/// Returns the fields of the first JSON value; `None` if that is not an object.
fn entries(body: &[u8]) -> Result<Option<Vec<(String, &RawValue)>>, RequestError> {
    let value = first_value(body)?;
    if !value.get().starts_with('{') {
        return Ok(None);
    }
    let Entries(entries) = serde_json::from_str(value.get()).map_err(|error| RequestError::json(&error))?;
    Ok(Some(entries))
}

/// Reads the fields and the names of the unknown ones. Spark reports a field as unknown if its own rendering of the message
/// doesn't contain it: fields that it doesn't know, a field's second value, and nulls (which it leaves out).
fn read(entries: &[(String, &RawValue)], version: SparkVersion) -> Result<(Fields, Vec<String>), RequestError> {
    let mut fields = Fields::default();
    let mut unknown: Vec<String> = Vec::new();
    let (mut seen, mut reported): (HashSet<&str>, HashSet<&str>) = (HashSet::new(), HashSet::new());
    for (key, value) in entries {
        let path = format_args!("[\"{key}\"]");
        let kept = match key.as_str() {
            "action" => true,
            "message" => coerce::text(value, path)?.is_some(),
            "clientSparkVersion" => set(&mut fields.client_spark_version, coerce::text(value, path)?),
            "appResource" => set(&mut fields.app_resource, coerce::text(value, path)?),
            "mainClass" => set(&mut fields.main_class, coerce::text(value, path)?),
            "appArgs" => set(&mut fields.app_args, coerce::array(value, path)?),
            "sparkProperties" => set_map(&mut fields.spark_properties, value, path, version)?,
            "environmentVariables" => set_map(&mut fields.environment_variables, value, path, version)?,
            "proxyUser" => {
                fields.proxy_user = coerce::text(value, path)?;
                true
            }
            "driverPodTemplate" => set_template(&mut fields.driver_pod_template, value, key)?,
            "executorPodTemplate" => set_template(&mut fields.executor_pod_template, value, key)?,
            _ => false,
        };
        let repeated = !seen.insert(key);
        if (!kept || repeated) && reported.insert(key) {
            unknown.push(key.clone());
        }
    }
    Ok((fields, unknown))
}

fn set<T>(field: &mut Option<T>, value: Option<T>) -> bool {
    *field = value;
    field.is_some()
}

/// Reads a map. Since 4.1 a null map is an empty one.
fn set_map(
    field: &mut Option<Texts>,
    value: &RawValue,
    path: impl Display,
    version: SparkVersion,
) -> Result<bool, RequestError> {
    let (map, repeated) = coerce::map(value, path)?.map_or((None, false), |(map, repeated)| (Some(map), repeated));
    *field = map.or_else(|| (version >= SparkVersion::V4_1).then(Texts::new));
    Ok(field.is_some() && !repeated)
}

/// Reads a template. Its values take many times the memory of its text, so its length is checked first.
fn set_template(field: &mut Option<serde_json::Value>, value: &RawValue, name: &str) -> Result<bool, RequestError> {
    let bytes = value.get().len();
    if bytes > MAX_TEMPLATE {
        let reason = format!("the template has {bytes} bytes; the maximum is {MAX_TEMPLATE}");
        return Err(Refusal::field(name, reason).into());
    }
    *field = coerce::parse(value, format_args!("[\"{name}\"]"))?;
    Ok(true)
}

fn other_message(class: String, entries: &[(String, &RawValue)], version: SparkVersion) -> RequestError {
    let Some(required) = action::required_fields(&class, version) else {
        return RequestError::NoSuchMessage(shortened(&class));
    };
    let has = |name: &str| entries.iter().any(|(key, value)| key == name && value.get() != "null");
    match required.iter().find(|name| !has(name)) {
        Some(name) => {
            let cause = format!("'{name}' is missing in message {class}.");
            RequestError::Invalid { message: class, cause }
        }
        None => RequestError::Unexpected(class),
    }
}

/// Creates the error for a body without an action, which Spark quotes. One with something like a secret isn't quoted.
fn no_action(json: &str) -> RequestError {
    RequestError::NoAction { json: if has_secret_words(json) { REDACTED.to_owned() } else { shortened(json) } }
}

/// Shortens a text to one page. Spark returns the whole body, which isn't necessary.
fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 4096;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn check_depth(body: &[u8]) -> Result<(), RequestError> {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > RequestError::MAX_DEPTH {
            return Err(RequestError::TooDeep { depth });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
