//! A stored object: its JSON as a tree and as bytes, and its key.

use std::sync::Arc;

use axum::body::Bytes;
use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value};

use super::resource::Resource;

/// The key of an object. Keys are ordered as in etcd: by resource, namespace, name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) plural: &'static str,
    /// Empty for cluster-scoped resources.
    pub(super) namespace: String,
    pub(super) name: String,
}

impl Key {
    pub(super) fn new(resource: &Resource, namespace: &str, name: &str) -> Self {
        Self { plural: resource.plural, namespace: namespace.into(), name: name.into() }
    }
}

/// One version of an object; immutable once it is stored.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) resource: &'static Resource,
    pub(super) value: Value,
    pub(super) json: Bytes,
}

impl Object {
    pub(super) fn new(resource: &'static Resource, value: Value) -> Arc<Self> {
        let json = Bytes::from(value.to_string());
        Arc::new(Self { resource, value, json })
    }

    pub(super) fn key(&self) -> Key {
        Key::new(self.resource, text(&self.value, "/metadata/namespace"), text(&self.value, "/metadata/name"))
    }

    pub(super) fn uid(&self) -> &str {
        text(&self.value, "/metadata/uid")
    }

    pub(super) fn owners(&self) -> &[Value] {
        list(&self.value, "/metadata/ownerReferences")
    }
}

/// Sets a field that is absent.
pub(super) fn default(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    map.entry(key).or_insert_with(|| value.into());
}

/// Returns the string at a JSON pointer, or the empty string.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the list at a JSON pointer, or the empty one.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns the object under a key, and creates it if there is none. A `value` that is not an object becomes one.
pub(super) fn child<'a>(value: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    let parent = map(value);
    map(parent.entry(key).or_insert_with(|| Value::Object(Map::new())))
}

/// Returns `value` as an object; anything else is replaced by the empty one.
pub(super) fn map(value: &mut Value) -> &mut Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => {
            *other = Value::Object(Map::new());
            map(other)
        }
    }
}

pub(super) fn metadata(value: &mut Value) -> &mut Map<String, Value> {
    child(value, "metadata")
}

/// Sets a field of an object, or removes it if the value is null.
pub(super) fn set(map: &mut Map<String, Value>, key: &str, value: Value) {
    if value.is_null() {
        map.remove(key);
    } else {
        map.insert(key.into(), value);
    }
}

/// Returns a time as Kubernetes writes it: RFC 3339 in UTC, whole seconds.
pub(super) fn timestamp(ahead_seconds: i64) -> Value {
    (Utc::now() + chrono::TimeDelta::seconds(ahead_seconds)).to_rfc3339_opts(SecondsFormat::Secs, true).into()
}
