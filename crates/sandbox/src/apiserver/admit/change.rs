//! The rules for what an update may change.

use serde_json::Value;

use super::super::failure::{Answer, Cause, Failure};
use super::super::object::{list, map, text};
use super::super::resource::Resource;
use super::data;

const POD_WORDS: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/// Compares two versions of an object.
///
/// # Errors
/// 422, with every changed field that is immutable.
pub(in super::super) fn check_change(resource: &Resource, old: &Value, new: &Value) -> Answer<()> {
    let mut causes: Vec<Cause> = new_finalizers(old, new).into_iter().collect();
    match resource.plural {
        "configmaps" | "secrets" => causes.extend(data::check_change(old, new)),
        "pods" if frozen_pod(old) != frozen_pod(new) => causes.push(Cause::forbidden("spec", POD_WORDS)),
        _ => {}
    }
    if resource.plural == "secrets" && old["type"] != new["type"] {
        causes.push(Cause::invalid("type", text(new, "/type"), "field is immutable"));
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(resource, text(new, "/metadata/name"), causes))
}

/// Refuses new finalizers on an object that is being deleted.
fn new_finalizers(old: &Value, new: &Value) -> Option<Cause> {
    old.pointer("/metadata/deletionTimestamp")?;
    let before = list(old, "/metadata/finalizers");
    let added: Vec<String> = list(new, "/metadata/finalizers")
        .iter()
        .filter(|finalizer| !before.contains(finalizer))
        .map(Value::to_string)
        .collect();
    let words = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    (!added.is_empty()).then(|| Cause::forbidden("metadata.finalizers", &words))
}

/// Returns a pod's spec without the fields that may change.
fn frozen_pod(pod: &Value) -> Value {
    let mut spec = pod["spec"].clone();
    for field in ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"] {
        map(&mut spec).remove(field);
    }
    for field in ["initContainers", "containers"] {
        for container in spec.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten() {
            map(container).remove("image");
        }
    }
    spec
}
