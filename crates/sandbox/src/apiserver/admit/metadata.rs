//! The rules of `metadata`, the same for all kinds.

use serde_json::{Map, Value};

use super::super::failure::Cause;
use super::super::object::{list, text};
use super::super::resource::Resource;
use super::names::{check_label_value, check_qualified};

/// Maximum number of bytes of the keys and values of all annotations together.
const ANNOTATION_BYTES: usize = 256 << 10;

pub(super) fn check(resource: &Resource, object: &Value) -> Vec<Cause> {
    let name = text(object, "/metadata/name");
    let mut causes = if name.is_empty() {
        vec![Cause::required("metadata.name", "name or generateName is required")]
    } else {
        resource.name_rule.check("metadata.name", name)
    };
    for (key, value) in pairs(object, "/metadata/labels") {
        causes.extend(check_qualified("metadata.labels", key));
        causes.extend(check_label_value("metadata.labels", value.as_str().unwrap_or_default()));
    }
    let mut bytes = 0;
    for (key, value) in pairs(object, "/metadata/annotations") {
        // Unlike labels, annotations may have upper-case letters in the key.
        causes.extend(check_qualified("metadata.annotations", &key.to_lowercase()));
        bytes += key.len() + value.as_str().unwrap_or_default().len();
    }
    if bytes > ANNOTATION_BYTES {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATION_BYTES));
    }
    causes.extend(finalizers(object));
    causes.extend(owners(object));
    causes
}

fn pairs<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.pointer(pointer).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn finalizers(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (index, finalizer) in list(object, "/metadata/finalizers").iter().enumerate() {
        let (field, name) = (format!("metadata.finalizers[{index}]"), finalizer.as_str().unwrap_or_default());
        causes.extend(check_qualified(&field, name));
        if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
            causes.push(Cause::invalid(
                field,
                name,
                "name is neither a standard finalizer name nor is it fully qualified",
            ));
        }
    }
    causes
}

fn owners(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let owners = list(object, "/metadata/ownerReferences");
    for owner in owners {
        for (part, pointer) in [("apiVersion", "/apiVersion"), ("kind", "/kind"), ("name", "/name"), ("uid", "/uid")] {
            if text(owner, pointer).is_empty() {
                causes.push(Cause::invalid(format!("metadata.ownerReferences.{part}"), "", "must not be empty"));
            }
        }
    }
    if owners.iter().filter(|owner| owner["controller"] == true).count() > 1 {
        let words = "Only one reference can have Controller set to true";
        causes.push(Cause::invalid("metadata.ownerReferences", "", words));
    }
    causes
}
