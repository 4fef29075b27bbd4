//! Strategic merge: like a JSON merge patch, but lists of items with a key are merged by that key.

use serde_json::{Map, Value};

/// Merges `patch` into `target`.
pub(super) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if patch.get("$patch").is_some_and(|directive| directive == "replace") {
        *target = Value::Object(plain(patch));
        return;
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(target) = target.as_object_mut() else { return };
    retain_keys(target, patch);
    for (key, value) in patch {
        if let Some(list) = key.strip_prefix("$deleteFromPrimitiveList/") {
            delete_from(target, list, value);
        } else if key.starts_with('$') {
            // Directives about the order of lists are ignored: the sandbox doesn't need that order.
        } else if value.is_null() {
            target.remove(key);
        } else if let Value::Array(items) = value {
            merge_list(target.entry(key).or_insert_with(|| Value::Array(Vec::new())), key, items);
        } else if !value.is_object() {
            target.insert(key.clone(), value.clone());
        } else if value.get("$patch").is_some_and(|directive| directive == "delete") {
            target.remove(key);
        } else {
            merge(target.entry(key).or_insert(Value::Null), value);
        }
    }
}

/// Applies `$retainKeys`: only these keys stay, for example when a volume changes its type.
fn retain_keys(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    if let Some(keys) = patch.get("$retainKeys").and_then(Value::as_array) {
        target.retain(|key, _| keys.iter().any(|kept| kept == key));
    }
}

fn delete_from(target: &mut Map<String, Value>, list: &str, values: &Value) {
    let Some(values) = values.as_array() else { return };
    if let Some(items) = target.get_mut(list).and_then(Value::as_array_mut) {
        items.retain(|item| !values.contains(item));
    }
}

fn merge_list(target: &mut Value, field: &str, patch: &[Value]) {
    let replaced = patch.iter().any(|item| item.get("$patch").is_some_and(|directive| directive == "replace"));
    let (Some(items), false) = (target.as_array_mut(), replaced) else {
        *target = patch.iter().filter(|item| item.get("$patch").is_none()).cloned().collect();
        return;
    };
    if field == "finalizers" {
        for item in patch {
            if !items.contains(item) {
                items.push(item.clone());
            }
        }
        return;
    }
    let Some(key) = merge_key(field, patch) else {
        *target = Value::Array(patch.to_vec());
        return;
    };
    for item in patch {
        let position = items.iter().position(|old| old.get(key) == item.get(key));
        let deleted = item.get("$patch").is_some_and(|directive| directive == "delete");
        match position {
            Some(position) if deleted => drop(items.remove(position)),
            Some(position) => merge(&mut items[position], item),
            None if deleted => {}
            None => items.push(clean(item)),
        }
    }
}

/// Returns the key that identifies the items of a list, from the `patchMergeKey` tags of Kubernetes' types. Lists without one
/// are replaced.
fn merge_key(field: &str, patch: &[Value]) -> Option<&'static str> {
    let key = match field {
        "containers"
        | "initContainers"
        | "ephemeralContainers"
        | "env"
        | "volumes"
        | "imagePullSecrets"
        | "secrets" => "name",
        "volumeMounts" => "mountPath",
        "volumeDevices" => "devicePath",
        "ownerReferences" => "uid",
        "conditions" | "addresses" => "type",
        "hostAliases" | "podIPs" | "hostIPs" => "ip",
        "topologySpreadConstraints" => "topologyKey",
        // A Service's ports are identified by `port`, a container's by `containerPort`.
        "ports" if patch.iter().any(|port| port.get("containerPort").is_some()) => "containerPort",
        "ports" => "port",
        _ => return None,
    };
    patch.iter().all(|item| item.get(key).is_some()).then_some(key)
}

/// Returns a new item without its directives.
fn clean(item: &Value) -> Value {
    let mut fresh = Value::Null;
    merge(&mut fresh, item);
    fresh
}

fn plain(patch: &Map<String, Value>) -> Map<String, Value> {
    patch.iter().filter(|(key, _)| !key.starts_with('$')).map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::merge;

    #[test]
    fn lists_are_merged_by_their_key() {
        for (old, patch, expected) in [
            (
                json!({ "conditions": [{ "type": "A", "status": "False", "reason": "r" }, { "type": "B" }] }),
                json!({ "conditions": [{ "type": "A", "status": "True" }, { "type": "C" }], "$setElementOrder/conditions": [] }),
                json!({ "conditions": [{ "type": "A", "status": "True", "reason": "r" }, { "type": "B" }, { "type": "C" }] }),
            ),
            (
                json!({ "env": [{ "name": "A", "value": "1" }, { "name": "B" }] }),
                json!({ "env": [{ "name": "A", "$patch": "delete" }] }),
                json!({ "env": [{ "name": "B" }] }),
            ),
            (
                json!({ "metadata": { "finalizers": ["a", "b"], "labels": { "x": "1" } } }),
                json!({ "metadata": { "$deleteFromPrimitiveList/finalizers": ["a"], "labels": { "x": null, "y": "2" } } }),
                json!({ "metadata": { "finalizers": ["b"], "labels": { "y": "2" } } }),
            ),
            (json!({ "args": ["a", "b"] }), json!({ "args": ["c"] }), json!({ "args": ["c"] })),
            (
                json!({ "spec": { "a": 1 } }),
                json!({ "spec": { "$patch": "replace", "b": 2 } }),
                json!({ "spec": { "b": 2 } }),
            ),
            (
                json!({ "ports": [{ "port": 1, "name": "a" }] }),
                json!({ "ports": [{ "port": 1, "targetPort": 2 }] }),
                json!({ "ports": [{ "port": 1, "name": "a", "targetPort": 2 }] }),
            ),
        ] {
            let mut target = old;
            merge(&mut target, &patch);
            assert_eq!(target, expected);
        }
    }
}
