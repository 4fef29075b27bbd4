//! DELETE of one object or of many.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::super::call::{Call, answer, list_answer};
use super::super::collect::end_namespace;
use super::super::failure::{Answer, Failure};
use super::super::object::Key;
use super::super::removal::{DeleteOptions, remove};
use super::super::selector::Selection;

fn options_of(call: &Call) -> Answer<DeleteOptions> {
    // The query counts only if there is no body.
    if call.body.is_empty() {
        return Ok(DeleteOptions::within(call.options.integer("gracePeriodSeconds")?));
    }
    serde_json::from_value(call.json()?)
        .map_err(|error| Failure::bad_request(format!("the DeleteOptions cannot be read: {error}")))
}

pub(in super::super) fn delete(call: &Call) -> Answer<Response> {
    let (key, options) = (call.key()?, options_of(call)?);
    if key.plural == "namespaces" && matches!(key.name.as_str(), "default" | "kube-system") {
        let message = format!("namespaces \"{}\" is forbidden: this namespace may not be deleted", key.name);
        return Err(Failure::forbidden(message));
    }
    let (object, gone) = call.write(|state| {
        let removed = remove(state, call.target.resource, &key, &options)?;
        if call.target.resource.plural == "namespaces" {
            end_namespace(state, &key.name);
        }
        Ok(removed)
    })?;
    if !gone || call.target.resource.returns_deleted {
        return Ok(answer(StatusCode::OK, &object));
    }
    let mut details = json!({ "name": key.name, "kind": key.plural, "uid": object.uid() });
    if !object.resource.group.is_empty() {
        details["group"] = object.resource.group.into();
    }
    let status =
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details });
    Ok(Json(status).into_response())
}

pub(in super::super) fn delete_collection(call: &Call) -> Answer<Response> {
    let options = options_of(call)?;
    let selection = Selection::new(&call.target, &call.options)?;
    let (version, deleted) = call.write(|state| {
        let keys: Vec<Key> = state
            .all(selection.resource, selection.namespace.as_deref())
            .filter(|object| selection.matches(object))
            .map(|object| object.key())
            .collect();
        let deleted: Answer<Vec<_>> =
            keys.iter().map(|key| remove(state, selection.resource, key, &options).map(|(object, _)| object)).collect();
        deleted.map(|deleted| (state.version(), deleted))
    })?;
    let metadata = json!({ "resourceVersion": version.to_string() });
    Ok(list_answer(selection.resource, &metadata, deleted.iter().map(|object| &object.json)))
}
