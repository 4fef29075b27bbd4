//! Changes of a request: `PATH=VALUE`.

use std::str::FromStr;

use serde_json::{Value, json};

/// Fields whose values are texts, whatever they look like: `labels.team=5`.
const TEXTS: [&str; 9] = [
    "name",
    "appResource",
    "mainClass",
    "sparkVersion",
    "clientId",
    "proxyUser",
    "sparkProperties",
    "environmentVariables",
    "labels",
];

/// A field of a request, or a key in one. A key may have dots: `sparkProperties.spark.executor.memory`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    field: String,
    key: Option<String>,
}

/// A field and its new value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Change {
    path: Path,
    value: Value,
}

impl Path {
    /// Returns a merge patch that gives the field a value.
    pub(super) fn patch(&self, value: Value) -> Value {
        match &self.key {
            Some(key) => json!({ &*self.field: { &**key: value } }),
            None => json!({ &*self.field: value }),
        }
    }

    /// Returns the path that a JSON pointer in a URI fragment stands for. `None` if it points elsewhere, such as into a list.
    pub(super) fn from_pointer(pointer: &str) -> Option<String> {
        let rest = pointer.strip_prefix("#/")?;
        let (field, key) = rest.split_once('/').map_or((rest, None), |(field, key)| (field, Some(key)));
        match key {
            Some(key) if field == "appArgs" || key.contains('/') => None,
            Some(key) => Some(format!("{field}.{}", key.replace("~1", "/").replace("~0", "~"))),
            None => Some(field.to_owned()),
        }
    }
}

impl Change {
    /// Returns the change as a merge patch.
    pub(super) fn patch(&self) -> Value {
        self.path.patch(self.value.clone())
    }
}

impl FromStr for Path {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (field, key) = text.split_once('.').map_or((text, None), |(field, key)| (field, Some(key)));
        if field.is_empty() || key.is_some_and(str::is_empty) {
            return Err("expected a field such as name, or a key in one such as labels.team");
        }
        Ok(Self { field: field.to_owned(), key: key.map(str::to_owned) })
    }
}

impl FromStr for Change {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (path, value) = text.split_once('=').ok_or("expected PATH=VALUE")?;
        let path: Path = path.parse()?;
        let as_text = || Value::String(value.to_owned());
        let value = match serde_json::from_str::<Value>(value) {
            Ok(parsed) if !TEXTS.contains(&&*path.field) && !parsed.is_null() => parsed,
            _ => as_text(),
        };
        Ok(Self { path, value })
    }
}

/// Combines two merge patches into one that has the effect of the first and then of the second. Nulls are kept.
pub(super) fn combine(first: &mut Value, second: Value) {
    match (first, second) {
        (Value::Object(first), Value::Object(second)) => {
            for (key, value) in second {
                combine(first.entry(key).or_insert(Value::Null), value);
            }
        }
        (first, second) => *first = second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_merge_patch() {
        let patch = |text: &str| text.parse::<Change>().map(|change| change.patch());
        for (text, expected) in [
            ("name=5", json!({"name": "5"})),
            ("labels.team=5", json!({"labels": {"team": "5"}})),
            ("sparkProperties.spark.a.b=x=y", json!({"sparkProperties": {"spark.a.b": "x=y"}})),
            ("maxRetries.application=2", json!({"maxRetries": {"application": 2}})),
            ("appArgs=[\"20\"]", json!({"appArgs": ["20"]})),
            ("uniqueName=true", json!({"uniqueName": true})),
            ("driverPodTemplate=name-of-one", json!({"driverPodTemplate": "name-of-one"})),
            ("environmentVariables.A=", json!({"environmentVariables": {"A": ""}})),
        ] {
            assert_eq!(patch(text), Ok(expected), "{text}");
        }
        for text in ["name", "=x", "labels.=x", ".x=y"] {
            assert!(patch(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_pointer_is_shown_as_a_path() {
        let path = |pointer| Path::from_pointer(pointer);
        assert_eq!(path("#/sparkProperties/spark.a~1b").as_deref(), Some("sparkProperties.spark.a/b"));
        assert_eq!(path("#/name").as_deref(), Some("name"));
        assert_eq!((path("#/appArgs/1"), path("#/driverPodTemplate/spec/x")), (None, None));
    }
}
