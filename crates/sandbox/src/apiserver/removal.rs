//! The removal of an object: grace periods for pods that run, finalizers, preconditions.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::failure::{Answer, Failure};
use super::object::{Key, Object, list, metadata, text, timestamp};
use super::resource::Resource;
use super::store::State;

/// The options of the client. The propagation policy is always `Background`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeleteOptions {
    grace_period_seconds: Option<i64>,
    preconditions: Option<Preconditions>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

impl DeleteOptions {
    /// Options with a grace period only; `None` is the pod's own.
    pub(super) fn within(grace_period_seconds: Option<i64>) -> Self {
        Self { grace_period_seconds, preconditions: None }
    }
}

/// Marks an object as being deleted, or removes it. Returns the object as it then is, and whether it was removed.
pub(super) fn remove(
    state: &mut State,
    resource: &'static Resource,
    key: &Key,
    options: &DeleteOptions,
) -> Answer<(Arc<Object>, bool)> {
    let current = state.get(key).cloned().ok_or_else(|| Failure::not_found(resource, &key.name))?;
    check_preconditions(&current, options)?;
    let (grace, finalizers) = (grace_of(&current, options), !list(&current.value, "/metadata/finalizers").is_empty());
    let mut value = current.value.clone();
    let already = current.value["metadata"]["deletionGracePeriodSeconds"].as_i64();
    if grace == 0 && !finalizers && resource.plural != "namespaces" {
        if resource.plural == "pods" {
            // As in Kubernetes, watches report the mark on a pod before they report its removal.
            mark(&mut value, already, 0);
            state.put(resource, value.clone())?;
        }
        return Ok((state.remove(resource, value), true));
    }
    // A second request can only shorten the grace period.
    if already.is_some_and(|already| grace >= already) {
        return Ok((current, false));
    }
    mark(&mut value, already, grace);
    if resource.plural == "namespaces" {
        value["status"]["phase"] = "Terminating".into();
    }
    Ok((state.put(resource, value)?, false))
}

/// Writes the time at which the object is to be removed. The grace period of a second request counts from the first request.
fn mark(object: &mut Value, already: Option<i64>, grace: i64) {
    let first = already.and_then(|seconds| {
        let end = chrono::DateTime::parse_from_rfc3339(text(object, "/metadata/deletionTimestamp")).ok()?;
        Some(end - chrono::TimeDelta::try_seconds(seconds)? + chrono::TimeDelta::try_seconds(grace)?)
    });
    let end = first
        .map_or_else(|| timestamp(grace), |end| end.to_utc().to_rfc3339_opts(chrono::SecondsFormat::Secs, true).into());
    let generation = object["metadata"]["generation"].as_i64();
    let metadata = metadata(object);
    metadata.insert("deletionTimestamp".into(), end);
    metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
    if let (Some(generation), None) = (generation, already) {
        metadata.insert("generation".into(), (generation + 1).into());
    }
}

/// Returns the grace period as Kubernetes grants it: only a pod that a node runs has one.
fn grace_of(object: &Object, options: &DeleteOptions) -> i64 {
    let ended = matches!(text(&object.value, "/status/phase"), "Succeeded" | "Failed");
    if object.resource.plural != "pods" || text(&object.value, "/spec/nodeName").is_empty() || ended {
        return 0;
    }
    let own = || object.value["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    let grace = options.grace_period_seconds.unwrap_or_else(own);
    if grace < 0 { 1 } else { grace.min(i64::from(u32::MAX)) }
}

fn check_preconditions(current: &Object, options: &DeleteOptions) -> Answer<()> {
    let Some(wanted) = &options.preconditions else { return Ok(()) };
    let record = |pointer| text(&current.value, pointer);
    let mismatch = |what: &str, wanted: &str, record: &str, how: &str| {
        format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({record}). The object might have been {how}"
        )
    };
    let (uid, version) = (current.uid(), record("/metadata/resourceVersion"));
    let why = match (&wanted.uid, &wanted.resource_version) {
        (Some(wanted), _) if wanted != uid => mismatch("UID", wanted, uid, "deleted and then recreated"),
        (_, Some(wanted)) if wanted != version => mismatch("ResourceVersion", wanted, version, "modified"),
        _ => return Ok(()),
    };
    Err(Failure::conflict(current.resource, record("/metadata/name"), &why))
}
