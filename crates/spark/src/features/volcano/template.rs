//! Converts a template's values to a `PodGroup`. Fields of the spec that Spark knows are converted as Spark's parser converts
//! them; other fields, such as those of a newer Volcano, stay as they are.

use std::collections::BTreeMap;

use k8s_openapi::{
    Resource,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{driver::PodGroup, pod_template};

const KNOWN: [&str; 5] = ["minMember", "minResources", "minTaskMember", "priorityClassName", "queue"];

/// Spark's `PodGroupSpec`.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct KnownSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    min_member: Option<i32>,
    #[serde(skip_serializing_if = "is_empty")]
    min_resources: Option<BTreeMap<String, Quantity>>,
    #[serde(skip_serializing_if = "is_empty")]
    min_task_member: Option<BTreeMap<String, i32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority_class_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<String>,
}

fn is_empty<T>(map: &Option<BTreeMap<String, T>>) -> bool {
    map.as_ref().is_none_or(BTreeMap::is_empty)
}

/// Converts a template to a `PodGroup`.
///
/// # Errors
/// A sentence that says why the template is invalid.
pub(super) fn pod_group(template: Value) -> Result<PodGroup, String> {
    let Value::Object(mut fields) = template else {
        return Err("A template of a PodGroup is a map with a `spec`.".to_owned());
    };
    // Only Volcano writes the status.
    fields.remove("status");
    refuse_other(&mut fields, "apiVersion", PodGroup::API_VERSION)?;
    refuse_other(&mut fields, "kind", PodGroup::KIND)?;
    let metadata = match present(&mut fields, "metadata") {
        Some(value) => pod_template::read::<ObjectMeta>(&value).map_err(|fault| format!("metadata.{fault}."))?,
        None => ObjectMeta::default(),
    };
    let spec = match present(&mut fields, "spec") {
        Some(Value::Object(spec)) => self::spec(spec)?,
        Some(_) => return Err("spec: expected a map.".to_owned()),
        None => Map::new(),
    };
    match fields.keys().next() {
        Some(field) => Err(format!("{field}: a PodGroup has no such field.")),
        None => Ok(PodGroup::new(metadata, spec)),
    }
}

/// Removes a field and returns its value, unless it is null.
fn present(fields: &mut Map<String, Value>, name: &str) -> Option<Value> {
    fields.remove(name).filter(|value| !value.is_null())
}

fn refuse_other(fields: &mut Map<String, Value>, name: &str, only: &str) -> Result<(), String> {
    match present(fields, name) {
        Some(value) if value != only => Err(format!("{name}: only {only} is allowed here, not {value}.")),
        _ => Ok(()),
    }
}

fn spec(fields: Map<String, Value>) -> Result<Map<String, Value>, String> {
    let (known, other): (Map<_, _>, Map<_, _>) =
        fields.into_iter().partition(|(name, _)| KNOWN.contains(&name.as_str()));
    let known: KnownSpec = pod_template::read(&Value::Object(known)).map_err(|fault| format!("spec.{fault}."))?;
    let Ok(Value::Object(mut spec)) = serde_json::to_value(known) else {
        return Err("spec: it can't be written as JSON.".to_owned());
    };
    spec.extend(other);
    Ok(spec)
}
