//! Compares the generated objects with those of a cluster.

use serde_json::Value;

use crate::object::Object;

/// Finds the objects that a cluster lacks, or that are different there. `found` returns the object of a kind, namespace and name.
///
/// Metadata may have more than the generated object, such as labels of the operator; the rest must be the same, since an
/// addition may weaken it. Amounts of quotas are the operator's to change, so only the names of the resources are compared.
pub fn missing(objects: &[Object], found: impl Fn(&str, Option<&str>, &str) -> Option<Value>) -> Vec<String> {
    let mut missing = Vec::new();
    for object in objects {
        let place = match object.namespace() {
            Some(namespace) => format!("{} {namespace}/{}", object.kind(), object.name()),
            None => format!("{} {}", object.kind(), object.name()),
        };
        match found(object.kind(), object.namespace(), object.name()) {
            None => missing.push(format!("{place} is missing")),
            Some(there) => {
                if let Some(difference) = compare_object(object, &there) {
                    missing.push(format!("{place} differs: {difference}"));
                }
            }
        }
    }
    missing
}

/// How two values are compared.
#[derive(Clone, Copy, PartialEq)]
enum Comparison {
    Exact,
    /// The cluster's value may have more members.
    Subset,
    /// It must only have the members, with any values.
    Members,
}

fn compare_object(object: &Object, there: &Value) -> Option<String> {
    object.manifest.as_object()?.iter().find_map(|(key, wanted)| {
        let how = match (key.as_str(), object.kind()) {
            ("metadata", _) => Comparison::Subset,
            (_, "ResourceQuota") => Comparison::Members,
            _ => Comparison::Exact,
        };
        // A list of the API server has neither in its items.
        let is_type = matches!(key.as_str(), "apiVersion" | "kind");
        if is_type { None } else { member(key, wanted, there.get(key), how) }
    })
}

fn member(path: &str, wanted: &Value, there: Option<&Value>, how: Comparison) -> Option<String> {
    match there {
        Some(there) => difference(path, wanted, there, how),
        // The API server leaves out what is empty.
        None if is_empty(wanted) => None,
        None => Some(format!("{path} is missing")),
    }
}

/// Returns the first place where a value isn't as wanted.
fn difference(path: &str, wanted: &Value, there: &Value, how: Comparison) -> Option<String> {
    match (wanted, there) {
        (Value::Object(wanted), Value::Object(there)) => {
            let at = |key: &str| format!("{path}.{key}");
            let mut members = wanted.iter();
            let differs = members.find_map(|(key, wanted)| member(&at(key), wanted, there.get(key), how));
            let mut others = there.iter().filter(|(key, other)| !wanted.contains_key(*key) && !is_empty(other));
            let mut added = || others.next().map(|(key, other)| format!("{} is {}, not absent", at(key), shown(other)));
            let is_closed = how == Comparison::Exact || (how == Comparison::Members && path == "spec");
            differs.or_else(|| if is_closed { added() } else { None })
        }
        (Value::Array(wanted), Value::Array(there)) if wanted.len() == there.len() => {
            let mut pairs = wanted.iter().zip(there).enumerate();
            pairs.find_map(|(index, (wanted, there))| difference(&format!("{path}[{index}]"), wanted, there, how))
        }
        (Value::Array(wanted), Value::Array(there)) => {
            Some(format!("{path} has {} entries, not {}", there.len(), wanted.len()))
        }
        (wanted, there) if wanted == there || how == Comparison::Members => None,
        (wanted, there) => Some(format!("{path} is {}, not {}", shown(there), shown(wanted))),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(members) => members.is_empty(),
        _ => false,
    }
}

/// Returns a value for a message.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 80;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compared(there: Option<Value>) -> Vec<String> {
        let manifest = json!({
            "kind": "Role", "metadata": { "name": "a", "namespace": "b" }, "rules": [{ "verbs": ["get", "list"], "x": [] }]
        });
        missing(&[Object::new("", manifest)], |kind, namespace, name| {
            assert_eq!((kind, namespace, name), ("Role", Some("b"), "a"));
            there.clone()
        })
    }

    #[test]
    fn metadata_may_have_more_than_the_generated_object() {
        let there = json!({
            "kind": "Role",
            "metadata": { "name": "a", "namespace": "b", "uid": "u", "labels": { "team": "x" } },
            "rules": [{ "verbs": ["get", "list"], "y": {} }]
        });
        assert_eq!(compared(Some(there)), Vec::<String>::new());
    }

    #[test]
    fn an_addition_that_may_weaken_an_object_is_reported() {
        let there = json!({
            "kind": "Role",
            "metadata": { "name": "a", "namespace": "b" },
            "rules": [{ "verbs": ["get", "list"], "resourceNames": ["c"] }]
        });
        assert_eq!(compared(Some(there)), ["Role b/a differs: rules[0].resourceNames is [\"c\"], not absent"]);
    }

    #[test]
    fn an_absent_or_different_object_is_reported_with_its_place() {
        assert_eq!(compared(None), ["Role b/a is missing"]);
        let mut there = json!({ "kind": "Role", "metadata": { "name": "a", "namespace": "b" } });
        assert_eq!(compared(Some(there.clone())), ["Role b/a differs: rules is missing"]);
        there["rules"] = json!([{ "verbs": ["get"] }]);
        assert_eq!(compared(Some(there.clone())), ["Role b/a differs: rules[0].verbs has 1 entries, not 2"]);
        there["rules"] = json!([{ "verbs": ["get", "watch"] }]);
        assert_eq!(compared(Some(there)), ["Role b/a differs: rules[0].verbs[1] is \"watch\", not \"list\""]);
    }

    #[test]
    fn amounts_of_a_quota_may_differ() {
        let quota =
            |hard: Value| json!({ "kind": "ResourceQuota", "metadata": { "name": "a" }, "spec": { "hard": hard } });
        let wanted = [Object::new("", quota(json!({ "pods": "1", "requests.cpu": "1" })))];
        let with = |hard: Value| missing(&wanted, |_, _, _| Some(quota(hard.clone())));
        assert_eq!(with(json!({ "pods": "50", "requests.cpu": "4k" })), Vec::<String>::new());
        assert_eq!(with(json!({ "pods": "50" })), ["ResourceQuota a differs: spec.hard.requests.cpu is missing"]);
    }
}
