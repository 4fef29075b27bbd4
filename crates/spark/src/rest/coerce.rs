//! Jackson's coercions: where a string is expected, a number or a boolean is accepted as it is written (`1e3` stays `1e3`).

use std::{collections::BTreeMap, fmt::Display};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

use super::error::RequestError;

/// The entries of a JSON object in the order they were sent, repeated keys included.
pub(super) struct Entries<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// A map of strings, in which a value may be `null`.
pub(super) type Texts = BTreeMap<String, Option<String>>;

/// Reads a `java.lang.String`.
pub(super) fn text(value: &RawValue, path: impl Display) -> Result<Option<String>, RequestError> {
    let json = value.get();
    match json.as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'{' | b'[') => Err(mismatch("java.lang.String", value, path)),
        Some(b'"') => parse(value, path).map(Some),
        _ => Ok(Some(json.to_owned())),
    }
}

/// Reads a `java.lang.String[]`.
pub(super) fn array(value: &RawValue, path: impl Display) -> Result<Option<Vec<Option<String>>>, RequestError> {
    match value.get().as_bytes().first() {
        Some(b'n') => Ok(None),
        Some(b'[') => {
            let items: Vec<&RawValue> = parse(value, &path)?;
            items
                .into_iter()
                .enumerate()
                .map(|(i, item)| text(item, format_args!("{path}[{i}]")))
                .collect::<Result<_, _>>()
                .map(Some)
        }
        _ => Err(mismatch("java.lang.String[]", value, path)),
    }
}

/// Reads a `scala.collection.immutable.Map<String, String>`, and returns whether a key was repeated (the last value counts).
pub(super) fn map(value: &RawValue, path: impl Display) -> Result<Option<(Texts, bool)>, RequestError> {
    match value.get().as_bytes().first() {
        Some(b'n') => return Ok(None),
        Some(b'{') => {}
        _ => {
            let class = "scala.collection.immutable.Map<java.lang.String,java.lang.String>";
            return Err(mismatch(class, value, path));
        }
    }
    let Entries(entries) = parse(value, &path)?;
    let (mut texts, sent) = (Texts::new(), entries.len());
    for (key, value) in entries {
        let value = text(value, format_args!("{path}[\"{key}\"]"))?;
        texts.insert(key, value);
    }
    let repeated = texts.len() < sent;
    Ok(Some((texts, repeated)))
}

/// Parses a value whose syntax is known to be valid. It can still fail because of an escape that is no character, or nesting
/// that is too deep for `T`.
pub(super) fn parse<'a, T: Deserialize<'a>>(value: &'a RawValue, path: impl Display) -> Result<T, RequestError> {
    serde_json::from_str(value.get())
        .map_err(|error| RequestError::Mismatch { problem: error.to_string(), path: path.to_string() })
}

fn mismatch(class: &str, value: &RawValue, path: impl Display) -> RequestError {
    let (kind, token) = match value.get().as_bytes().first() {
        Some(b'{') => ("Object", "START_OBJECT"),
        Some(b'[') => ("Array", "START_ARRAY"),
        Some(b'"') => ("String", "VALUE_STRING"),
        Some(b't') => ("Boolean", "VALUE_TRUE"),
        Some(b'f') => ("Boolean", "VALUE_FALSE"),
        _ if value.get().contains(['.', 'e', 'E']) => ("Floating-point", "VALUE_NUMBER_FLOAT"),
        _ => ("Integer", "VALUE_NUMBER_INT"),
    };
    RequestError::Mismatch {
        problem: format!("Cannot deserialize value of type `{class}` from {kind} value (token `JsonToken.{token}`)"),
        path: path.to_string(),
    }
}
