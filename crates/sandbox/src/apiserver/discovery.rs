//! Discovery: version, groups and resources, for clients that don't know yet what is served.

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::resource::{RESOURCES, Resource};

/// The minor version of the Kubernetes types with which objects are decoded.
const MINOR: &str = "33";

/// Returns the answer at a discovery path; `None` for any other path.
pub(super) fn discover(path: &str) -> Option<Response> {
    let document = match path.trim_matches('/') {
        "readyz" | "livez" | "healthz" => return Some("ok".into_response()),
        "version" => version(),
        "api" => json!({ "kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [] }),
        "apis" => json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups() }),
        "api/v1" => resources(""),
        path => {
            let group = path.strip_prefix("apis/")?;
            match group.strip_suffix("/v1") {
                Some(group) if is_group(group) => resources(group),
                None if is_group(group) => described(group),
                _ => return None,
            }
        }
    };
    Some(Json(document).into_response())
}

fn version() -> Value {
    json!({ "major": "1", "minor": MINOR, "gitVersion": format!("v1.{MINOR}.0+sparkgate-sandbox"), "gitCommit": "",
        "gitTreeState": "", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH) })
}

fn is_group(group: &str) -> bool {
    !group.is_empty() && RESOURCES.iter().any(|resource| resource.group == group)
}

fn groups() -> Vec<Value> {
    let mut names: Vec<&str> =
        RESOURCES.iter().map(|resource| resource.group).filter(|group| !group.is_empty()).collect();
    names.dedup();
    names.into_iter().map(described).collect()
}

fn described(group: &str) -> Value {
    let version = json!({ "groupVersion": format!("{group}/v1"), "version": "v1" });
    json!({ "kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": [version], "preferredVersion": version })
}

fn resources(group: &str) -> Value {
    let served = RESOURCES.iter().filter(|resource| resource.group == group);
    let version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
    let list: Vec<Value> = served.flat_map(|resource| entries(resource)).collect();
    json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": list })
}

fn entries(resource: &Resource) -> Vec<Value> {
    let entry = |subresource: &str, kind: &str, verbs: &[&str]| {
        json!({ "name": format!("{}{subresource}", resource.plural), "singularName": if subresource.is_empty() { resource.singular } else { "" },
            "namespaced": resource.namespaced, "kind": kind, "verbs": verbs })
    };
    let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
    let mut main = entry("", resource.kind, &verbs);
    if !resource.short.is_empty() {
        main["shortNames"] = json!(resource.short);
    }
    let mut entries = vec![main];
    if resource.status {
        entries.push(entry("/status", resource.kind, &["get", "patch", "update"]));
    }
    if resource.plural == "pods" {
        entries.push(entry("/binding", "Binding", &["create"]));
        entries.push(entry("/log", "Pod", &["get"]));
    }
    entries
}
