//! PUT and PATCH: create a new version of an object.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;

use super::super::admit;
use super::super::call::{Call, answer};
use super::super::failure::{Answer, Failure};
use super::super::object::{Key, Object, map, metadata, set, text};
use super::super::patch::Patch;
use super::super::store::State;
use super::create::{insert, settle_namespace};

/// The part of an object that a request may change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) enum Part {
    /// Everything except the status, if the status is a subresource.
    Main,
    Status,
}

pub(in super::super) fn put(call: &Call, part: Part) -> Answer<Response> {
    let key = call.key()?;
    let body = admit::decode(call.target.resource, call.json()?)?;
    let updated = call.write(|state| {
        let current = state.get(&key).cloned().ok_or_else(|| Failure::not_found(call.target.resource, &key.name))?;
        replace(state, &key, &current, body, part)
    })?;
    Ok(answer(StatusCode::OK, &updated))
}

pub(in super::super) fn patch(call: &Call, part: Part) -> Answer<Response> {
    let (key, resource) = (call.key()?, call.target.resource);
    let patch = Patch::parse(call)?;
    let (status, updated) = call.write(|state| match state.get(&key).cloned() {
        Some(current) => {
            let body = admit::decode(resource, patch.apply_to(&current.value)?)?;
            replace(state, &key, &current, body, part).map(|updated| (StatusCode::OK, updated))
        }
        None if patch.is_apply() && part == Part::Main => {
            let body = admit::decode(resource, patch.apply_to(&Value::Null)?)?;
            insert(state, resource, call.target.namespace.as_deref(), body).map(|made| (StatusCode::CREATED, made))
        }
        None => Err(Failure::not_found(resource, &key.name)),
    })?;
    Ok(answer(status, &updated))
}

/// Replaces `current` by `new`, unless another client has changed the object or the change is not allowed. The change that
/// removes the last finalizer of an object that is being deleted removes the object.
pub(super) fn replace(
    state: &mut State,
    key: &Key,
    current: &Arc<Object>,
    mut new: Value,
    part: Part,
) -> Answer<Arc<Object>> {
    let (resource, old) = (current.resource, &current.value);
    settle_namespace(&mut new, (!key.namespace.is_empty()).then_some(key.namespace.as_str()))?;
    let name = text(&new, "/metadata/name");
    if name != key.name {
        return Err(Failure::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            key.name
        )));
    }
    check_preconditions(current, key, &new)?;
    for field in
        ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion"]
    {
        set(metadata(&mut new), field, old["metadata"][field].clone());
    }
    keep_other_part(resource.status, old, &mut new, part);
    admit::fill_defaults(resource, &mut new);
    admit::validate(resource, &new)?;
    admit::check_change(resource, old, &new)?;
    if resource.generation && old["spec"] != new["spec"] {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default() + 1;
        metadata(&mut new).insert("generation".into(), generation.into());
    }
    if may_go(&new) {
        return Ok(state.remove(resource, new));
    }
    if new == *old {
        return Ok(Arc::clone(current)); // nothing changed: no new version
    }
    state.put(resource, new)
}

/// Returns whether an object is being deleted and has neither a finalizer nor a grace period left.
fn may_go(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let no_finalizers = metadata["finalizers"].as_array().is_none_or(Vec::is_empty);
    let no_grace = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0;
    // A namespace is removed by the garbage collector once it is empty.
    metadata["deletionTimestamp"].is_string() && no_finalizers && no_grace && object["kind"] != "Namespace"
}

fn check_preconditions(current: &Object, key: &Key, new: &Value) -> Answer<()> {
    let (uid, version) = (text(new, "/metadata/uid"), text(new, "/metadata/resourceVersion"));
    if !uid.is_empty() && uid != current.uid() {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", current.uid());
        return Err(Failure::conflict(current.resource, &key.name, &why));
    }
    if !version.is_empty() && version != text(&current.value, "/metadata/resourceVersion") {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Failure::conflict(current.resource, &key.name, why));
    }
    Ok(())
}

/// Copies from `old` the fields that this part of the API doesn't change.
fn keep_other_part(has_status: bool, old: &Value, new: &mut Value, part: Part) {
    match part {
        Part::Main if has_status => set(map(new), "status", old["status"].clone()),
        Part::Main => {}
        Part::Status => {
            let status = new["status"].take();
            set(metadata(new), "ownerReferences", old["metadata"]["ownerReferences"].clone());
            let metadata = new["metadata"].take();
            *new = old.clone();
            set(map(new), "metadata", metadata);
            set(map(new), "status", status);
        }
    }
}
