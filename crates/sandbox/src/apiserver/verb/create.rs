//! POST: creates an object.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;

use super::super::admit::{self, names};
use super::super::call::{Call, answer};
use super::super::failure::{Answer, Failure};
use super::super::object::{Key, Object, metadata, text, timestamp};
use super::super::resource::{NAMESPACES, Resource};
use super::super::store::State;

pub(in super::super) fn create(call: &Call) -> Answer<Response> {
    let (resource, namespace) = (call.target.resource, call.target.namespace.as_deref());
    let object = admit::decode(resource, call.json()?)?;
    let created = call.write(|state| insert(state, resource, namespace, object))?;
    Ok(answer(StatusCode::CREATED, &created))
}

/// Stores a new object, with all fields that the server adds to it.
pub(in super::super) fn insert(
    state: &mut State,
    resource: &'static Resource,
    namespace: Option<&str>,
    mut object: Value,
) -> Answer<Arc<Object>> {
    settle_namespace(&mut object, namespace)?;
    settle_name(&mut object);
    let name = text(&object, "/metadata/name").to_owned();
    if let Some(namespace) = namespace {
        admit_to_namespace(state, resource, &name, namespace)?;
    }
    if !text(&object, "/metadata/resourceVersion").is_empty() {
        return Err(Failure::bad_request("resourceVersion should not be set on objects to be created"));
    }
    admit::fill_defaults(resource, &mut object);
    admit::validate(resource, &object)?;
    if state.get(&Key::new(resource, namespace.unwrap_or_default(), &name)).is_some() {
        return Err(Failure::already_exists(resource, &name));
    }
    let metadata = metadata(&mut object);
    metadata.insert("uid".into(), uuid::Uuid::new_v4().to_string().into());
    metadata.insert("creationTimestamp".into(), timestamp(0));
    metadata.remove("deletionTimestamp");
    metadata.remove("deletionGracePeriodSeconds");
    metadata.remove("generation");
    if resource.generation {
        metadata.insert("generation".into(), 1.into());
    }
    if let Some(status) = admit::initial_status(resource) {
        object["status"] = status;
    }
    state.put(resource, object)
}

/// Sets the object's namespace to that of the path; a different one in the body is an error.
pub(super) fn settle_namespace(object: &mut Value, namespace: Option<&str>) -> Answer<()> {
    let given = text(object, "/metadata/namespace");
    if !given.is_empty() && Some(given) != namespace {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Failure::bad_request(message));
    }
    if let Some(namespace) = namespace {
        metadata(object).insert("namespace".into(), namespace.into());
    }
    Ok(())
}

fn settle_name(object: &mut Value) {
    let base = text(object, "/metadata/generateName");
    if text(object, "/metadata/name").is_empty() && !base.is_empty() {
        let name = names::generated(base);
        metadata(object).insert("name".into(), name.into());
    }
}

fn admit_to_namespace(state: &State, resource: &Resource, name: &str, namespace: &str) -> Answer<()> {
    let home =
        state.get(&Key::new(&NAMESPACES, "", namespace)).ok_or_else(|| Failure::not_found(&NAMESPACES, namespace))?;
    if home.value.pointer("/metadata/deletionTimestamp").is_some() {
        return Err(Failure::namespace_terminating(resource, name, namespace));
    }
    Ok(())
}
