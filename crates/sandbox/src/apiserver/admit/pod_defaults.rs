//! The defaults of a pod: Kubernetes' own and those of its standard admission plug-ins.

use serde_json::{Map, Value, json};

use super::super::object::{child, default, map};

/// Seconds for which a pod stays on a node that is unreachable, from the plug-in `DefaultTolerationSeconds`.
const TOLERATION_SECONDS: u32 = 300;

pub(super) fn fill(pod: &mut Value) {
    let spec = child(pod, "spec");
    default(spec, "restartPolicy", "Always");
    default(spec, "terminationGracePeriodSeconds", 30);
    default(spec, "dnsPolicy", "ClusterFirst");
    default(spec, "securityContext", json!({}));
    default(spec, "schedulerName", "default-scheduler");
    default(spec, "enableServiceLinks", true);
    default(spec, "priority", 0);
    default(spec, "preemptionPolicy", "PreemptLowerPriority");
    // The deprecated field for the name of the service account is kept equal.
    match (spec.get("serviceAccountName").cloned(), spec.get("serviceAccount").cloned()) {
        (Some(name), _) => spec.insert("serviceAccount".into(), name),
        (None, Some(name)) => spec.insert("serviceAccountName".into(), name),
        (None, None) => None,
    };
    tolerations(spec);
    each(spec, "volumes", volume);
    each(spec, "initContainers", container);
    each(spec, "containers", container);
}

fn each(parent: &mut Map<String, Value>, key: &str, fill: fn(&mut Map<String, Value>)) {
    parent.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().map(map).for_each(fill);
}

fn tolerations(spec: &mut Map<String, Value>) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(list) = tolerations.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = |toleration: &Value| {
            let own = toleration["key"] == key || toleration["key"].is_null();
            own && (toleration["effect"] == "NoExecute" || toleration["effect"].is_null())
        };
        if !list.iter().any(tolerated) {
            list.push(json!({ "key": key, "operator": "Exists", "effect": "NoExecute",
                "tolerationSeconds": TOLERATION_SECONDS }));
        }
    }
}

fn volume(volume: &mut Map<String, Value>) {
    if volume.len() < 2 {
        volume.insert("emptyDir".into(), json!({})); // only a name is given
    }
    for source in ["configMap", "secret", "projected", "downwardAPI"] {
        if let Some(source) = volume.get_mut(source) {
            default(map(source), "defaultMode", 0o644);
        }
    }
}

fn container(container: &mut Map<String, Value>) {
    default(container, "terminationMessagePath", "/dev/termination-log");
    default(container, "terminationMessagePolicy", "File");
    default(container, "resources", json!({}));
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let tag = image.rsplit('/').next().and_then(|last| last.split_once(':')).map(|(_, tag)| tag);
    let latest = !image.contains('@') && tag.is_none_or(|tag| tag == "latest");
    default(container, "imagePullPolicy", if latest { "Always" } else { "IfNotPresent" });
    each(container, "ports", |port| default(port, "protocol", "TCP"));
    each(container, "env", |variable| {
        if let Some(reference) = variable.get_mut("valueFrom").and_then(|source| source.get_mut("fieldRef")) {
            default(map(reference), "apiVersion", "v1");
        }
    });
    // A limit without a request is also the request.
    let resources = container.entry("resources").or_insert_with(|| json!({}));
    let limits = resources.get("limits").and_then(Value::as_object).cloned().unwrap_or_default();
    if !limits.is_empty() {
        let requests = child(resources, "requests");
        for (name, quantity) in limits {
            default(requests, &name, quantity);
        }
    }
}
