//! The defaults that kube-apiserver sets and on which clients rely.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::super::object::{child, default, map, text};
use super::super::resource::Resource;
use super::pod_defaults;

/// Sets the defaults of fields that the request leaves out.
pub(in super::super) fn fill_defaults(resource: &Resource, object: &mut Value) {
    match resource.plural {
        "pods" => pod_defaults::fill(object),
        "services" => service(object),
        "secrets" => secret(object),
        "networkpolicies" => network_policy(object),
        "persistentvolumeclaims" => default(child(object, "spec"), "volumeMode", "Filesystem"),
        "namespaces" => namespace(object),
        _ => {}
    }
}

/// Returns the status of a new object. As in Kubernetes, the status in the request counts only for nodes.
pub(in super::super) fn initial_status(resource: &Resource) -> Option<Value> {
    match resource.plural {
        "pods" | "persistentvolumeclaims" => Some(json!({ "phase": "Pending" })),
        "namespaces" => Some(json!({ "phase": "Active" })),
        "services" => Some(json!({ "loadBalancer": {} })),
        _ => None,
    }
}

fn service(service: &mut Value) {
    let spec = child(service, "spec");
    default(spec, "type", "ClusterIP");
    default(spec, "sessionAffinity", "None");
    default(spec, "internalTrafficPolicy", "Cluster");
    if let Some(address) = spec.get("clusterIP").cloned() {
        default(spec, "clusterIPs", json!([address]));
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten().map(map) {
        default(port, "protocol", "TCP");
        let number = port.get("port").cloned().unwrap_or_default();
        default(port, "targetPort", number);
    }
}

fn secret(secret: &mut Value) {
    let object = map(secret);
    default(object, "type", "Opaque");
    let Some(Value::Object(plain)) = object.remove("stringData") else { return };
    let data = child(secret, "data");
    for (key, value) in plain {
        data.insert(key, BASE64_STANDARD.encode(value.as_str().unwrap_or_default()).into());
    }
}

fn network_policy(policy: &mut Value) {
    let spec = child(policy, "spec");
    let kinds = if spec.contains_key("egress") { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    default(spec, "policyTypes", kinds);
}

fn namespace(namespace: &mut Value) {
    let name = text(namespace, "/metadata/name").to_owned();
    child(namespace, "spec").insert("finalizers".into(), json!(["kubernetes"]));
    let metadata = super::metadata_of(namespace);
    let labels = metadata.entry("labels").or_insert_with(|| json!({}));
    map(labels).insert("kubernetes.io/metadata.name".into(), name.into());
}
