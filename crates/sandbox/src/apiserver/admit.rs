//! Checks and completes an object between a request and the store: types, defaults, rules.

mod change;
mod data;
mod defaults;
mod metadata;
pub(super) mod names;
mod pod;
mod pod_defaults;
mod quantity;
mod service;

use serde_json::Value;

pub(super) use change::check_change;
pub(super) use defaults::{fill_defaults, initial_status};

use super::failure::{Answer, Failure};
use super::object::{list, map, metadata as metadata_of, text};
use super::resource::Resource;

/// Decodes an object of the resource: kind and version may be left out, the types of all fields must match, unknown fields are
/// dropped.
///
/// # Errors
/// 400, with the error in the field.
pub(super) fn decode(resource: &Resource, mut body: Value) -> Answer<Value> {
    let cannot = |kind: &str, why: String| {
        Failure::bad_request(format!("{kind} in version \"v1\" cannot be handled as a {}: {why}", resource.kind))
    };
    if !body.is_object() {
        return Err(Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; it is no JSON object",
            resource.kind
        )));
    }
    let (kind, version) = (text(&body, "/kind").to_owned(), text(&body, "/apiVersion").to_owned());
    if !kind.is_empty() && kind != resource.kind {
        let why = format!("converting (v1.{kind}) to (core.{}): unknown conversion", resource.kind);
        return Err(cannot(&kind, why));
    }
    if !version.is_empty() && version != resource.api_version() {
        return Err(cannot(
            resource.kind,
            format!("no kind \"{}\" is registered for version \"{version}\"", resource.kind),
        ));
    }
    let object = map(&mut body);
    object.insert("kind".into(), resource.kind.into());
    object.insert("apiVersion".into(), resource.api_version().into());
    let mut object = (resource.decode)(body).map_err(|error| cannot(resource.kind, error.to_string()))?;
    if let Some(fault) = pod::wrong_quantity(&object) {
        return Err(cannot(resource.kind, fault));
    }
    let metadata = metadata_of(&mut object);
    metadata.remove("managedFields"); // field ownership is not tracked
    metadata.remove("selfLink");
    Ok(object)
}

/// Checks a whole object by the rules of its kind.
///
/// # Errors
/// 422, with every error that was found.
pub(super) fn validate(resource: &Resource, object: &Value) -> Answer<()> {
    let mut causes = metadata::check(resource, object);
    match resource.plural {
        "pods" => causes.extend(pod::check(object)),
        "configmaps" | "secrets" => causes.extend(data::check(object)),
        "services" => causes.extend(service::check_service(object)),
        "persistentvolumeclaims" => causes.extend(service::check_claim(object)),
        _ => {}
    }
    if causes.is_empty() {
        return Ok(());
    }
    Err(Failure::invalid(resource, text(object, "/metadata/name"), causes))
}

/// Returns the containers of a pod, with the path of their list.
fn containers(pod: &Value) -> impl Iterator<Item = (&'static str, &[Value])> {
    [("initContainers", "/spec/initContainers"), ("containers", "/spec/containers")]
        .into_iter()
        .map(|(field, pointer)| (field, list(pod, pointer)))
}
