//! POST …/pods/{name}/binding: binds the pod to a node, for a scheduler or the node itself.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::super::call::Call;
use super::super::failure::{Answer, Failure};
use super::super::object::{child, text, timestamp};
use super::super::resource::PODS;

pub(in super::super) fn bind(call: &Call) -> Answer<Response> {
    let (key, binding) = (call.key()?, call.json()?);
    if text(&binding, "/metadata/name") != key.name {
        return Err(Failure::bad_request("name in URL does not match name in Binding object"));
    }
    let (kind, node) = (text(&binding, "/target/kind"), text(&binding, "/target/name"));
    if !matches!(kind, "" | "Node") || node.is_empty() {
        let message = format!("Binding \"{}\" is invalid: target: a Node with a name is needed", key.name);
        return Err(Failure::unprocessable(message));
    }
    let conflict = |why: String| Failure::binding_conflict(&key.name, &why);
    call.write(|state| {
        let pod = state.get(&key).cloned().ok_or_else(|| Failure::not_found(&PODS, &key.name))?;
        let uid = text(&binding, "/metadata/uid");
        if !uid.is_empty() && uid != pod.uid() {
            let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", pod.uid());
            return Err(conflict(why));
        }
        if pod.value.pointer("/metadata/deletionTimestamp").is_some() {
            return Err(conflict(format!("pod {} is being deleted, cannot be assigned to a host", key.name)));
        }
        let bound = text(&pod.value, "/spec/nodeName");
        if !bound.is_empty() {
            return Err(conflict(format!("pod {} is already assigned to node \"{bound}\"", key.name)));
        }
        let mut value = pod.value.clone();
        child(&mut value, "spec").insert("nodeName".into(), node.into());
        let status = child(&mut value, "status");
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        if let Some(conditions) = conditions.as_array_mut() {
            conditions.retain(|condition| condition["type"] != "PodScheduled");
            conditions.push(json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": timestamp(0) }));
        }
        state.put(&PODS, value)
    })?;
    let status = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 });
    Ok((StatusCode::CREATED, Json(status)).into_response())
}
