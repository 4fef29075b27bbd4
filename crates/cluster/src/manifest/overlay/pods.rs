//! Changes of a pod's fields.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use serde_json::{Map, Value, json};

use super::{
    error::{OverlayError, conflict, unreadable},
    placement::Placement,
};
use crate::labels;

/// Places the driver's pod.
pub(super) fn place_driver(pod: &mut Value, placement: &Placement) -> Result<(), OverlayError> {
    let Placement { labels, annotations, node_selector, tolerations } = placement;
    insert(pod, ["metadata", "labels"], "label", labels)?;
    insert(pod, ["metadata", "annotations"], "annotation", annotations)?;
    insert(pod, ["spec", "nodeSelector"], "node selector", node_selector)?;
    tolerate("driver", pod, tolerations)
}

fn insert(
    pod: &mut Value,
    path: [&str; 2],
    field: &'static str,
    wanted: &BTreeMap<String, String>,
) -> Result<(), OverlayError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let map = object(object(pod, path[0])?, path[1])?;
    let map = map.as_object_mut().ok_or_else(|| unreadable(format!("the driver's {} is no object", path[1])))?;
    for (key, wanted) in wanted {
        if let Some(present) = map.get(key).filter(|present| *present != wanted) {
            let text = present.as_str().map_or_else(|| present.to_string(), str::to_owned);
            return Err(conflict("driver", field, key, &text, wanted));
        }
        map.insert(key.clone(), wanted.clone().into());
    }
    Ok(())
}

/// Replaces node selectors of a pod, or removes those that have no value.
pub(super) fn select_nodes(
    whose: &'static str,
    pod: &mut Value,
    wanted: &BTreeMap<String, Option<String>>,
) -> Result<(), OverlayError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let selector = object(object(pod, "spec")?, "nodeSelector")?;
    let selector =
        selector.as_object_mut().ok_or_else(|| unreadable(format!("the {whose}'s nodeSelector is no object")))?;
    for (key, wanted) in wanted {
        match wanted {
            Some(value) => selector.insert(key.clone(), value.clone().into()),
            None => selector.remove(key),
        };
    }
    Ok(())
}

/// Adds tolerations to a pod that lacks them.
pub(super) fn tolerate(whose: &'static str, pod: &mut Value, tolerations: &[Toleration]) -> Result<(), OverlayError> {
    if tolerations.is_empty() {
        return Ok(());
    }
    let list = list(object(pod, "spec")?, "tolerations")
        .map_err(|_| unreadable(format!("the {whose}'s tolerations are no list")))?;
    for toleration in tolerations {
        let toleration = serde_json::to_value(toleration).map_err(|error| unreadable(error.to_string()))?;
        if !list.contains(&toleration) {
            list.push(toleration);
        }
    }
    Ok(())
}

/// Sets amounts of the driver's container.
pub(super) fn size_driver(pod: &mut Value, amounts: &BTreeMap<String, String>) -> Result<(), OverlayError> {
    if amounts.is_empty() {
        return Ok(());
    }
    let resources = object(container(pod)?, "resources")?;
    for (name, amount) in amounts {
        object(resources, "requests")?[name] = amount.clone().into();
        if let Some(limit) = resources.get_mut("limits").and_then(|limits| limits.get_mut(name)) {
            *limit = amount.clone().into();
        }
    }
    Ok(())
}

/// Mounts a volume in the driver's container.
pub(super) fn mount(pod: &mut Value, volume: Value, mount: Value) -> Result<(), OverlayError> {
    list(object(pod, "spec")?, "volumes")?.push(volume);
    list(container(pod)?, "volumeMounts")?.push(mount);
    Ok(())
}

/// Returns the driver's container: the one that the annotation names, or else the last, as Spark appends it.
pub(super) fn container(pod: &mut Value) -> Result<&mut Value, OverlayError> {
    let annotation = &pod["metadata"]["annotations"][labels::DRIVER_CONTAINER];
    let name = annotation.as_str().map(str::to_owned);
    let containers = list(object(pod, "spec")?, "containers")?;
    let place = containers.iter().position(|container| container["name"].as_str() == name.as_deref());
    let place = place.or_else(|| containers.len().checked_sub(1));
    place.and_then(|place| containers.get_mut(place)).ok_or_else(|| unreadable("the driver's pod has no container"))
}

/// Returns a member that is an object; it is created if it is absent.
fn object<'a>(value: &'a mut Value, key: &str) -> Result<&'a mut Value, OverlayError> {
    let members = value.as_object_mut().ok_or_else(|| unreadable(format!("the parent of {key} is no object")))?;
    let member = entry(members, key, || json!({}));
    if member.is_object() { Ok(member) } else { Err(unreadable(format!("{key} is no object"))) }
}

/// Returns a member that is a list; it is created if it is absent.
fn list<'a>(value: &'a mut Value, key: &str) -> Result<&'a mut Vec<Value>, OverlayError> {
    let members = value.as_object_mut().ok_or_else(|| unreadable(format!("the parent of {key} is no object")))?;
    entry(members, key, || json!([])).as_array_mut().ok_or_else(|| unreadable(format!("{key} is no list")))
}

fn entry<'a>(members: &'a mut Map<String, Value>, key: &str, empty: impl FnOnce() -> Value) -> &'a mut Value {
    let member = members.entry(key).or_insert(Value::Null);
    if member.is_null() {
        *member = empty();
    }
    member
}
