//! What a driver does with the token of its account: pods that it creates, and changes of an executor that exists.

use serde_json::{Value, json};

use super::{Expected, fields, is_optional, yaml};
use crate::attacks::played;

/// A request to the API server.
#[derive(Debug, Clone)]
pub(crate) struct Direct {
    pub(crate) name: String,
    pub(crate) rule: &'static str,
    pub(crate) method: &'static str,
    /// The path below that of the namespace's API, such as `/api/v1/namespaces/a/pods`.
    pub(crate) path: String,
    pub(crate) content_type: &'static str,
    pub(crate) body: String,
    pub(crate) expected: Expected,
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";

/// Returns an executor within the policy, as a driver creates it.
pub(crate) fn executor(driver: &Value, namespace: &str, name: &str) -> Value {
    let labels = &driver["metadata"]["labels"];
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "namespace": namespace,
            "labels": {
                "spark-role": "executor", "spark-app-selector": labels["spark-app-selector"], "spark-exec-id": "7",
                "sparkgate.dev/submission-id": labels["sparkgate.dev/submission-id"],
                "sparkgate.dev/attempt": labels["sparkgate.dev/attempt"],
                "sparkgate.dev/instance": labels["sparkgate.dev/instance"],
            },
            "annotations": {},
            "ownerReferences": [played::owner(driver)],
        },
        "spec": {
            "serviceAccountName": "spark", "restartPolicy": "Never",
            "containers": [{
                "name": "main", "image": "registry.example.org/team/spark:1",
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
            }],
        },
    })
}

/// Returns all requests of a driver, which has created the executor `existing`.
pub(crate) fn requests(driver: &Value, namespace: &str, existing: &str) -> Vec<Direct> {
    let mut requests = pods(driver, namespace);
    requests.extend(changes(namespace, existing));
    requests.extend(detours(driver, namespace));
    requests
}

/// Each field of a pod, in each container, in three spellings of a creation.
fn pods(driver: &Value, namespace: &str) -> Vec<Direct> {
    let pods = format!("/api/v1/namespaces/{namespace}/pods");
    let mut requests = Vec::new();
    let of_pods = fields::REFUSED.iter().filter(|(rule, ..)| *rule != fields::RESTARTS);
    let refused = of_pods.map(|field| (field, Expected::Refused));
    let permitted = fields::PERMITTED.iter().map(|field| (field, Expected::Passes));
    let own = fields::REFUSED_OF_DRIVERS.iter().map(|field| (field, Expected::Refused));
    for ((rule, place, field), expected) in refused.chain(permitted).chain(own) {
        for carrier in fields::Place::of_driver(*place).carriers() {
            let name = format!("direct-{}", requests.len());
            let mut pod = executor(driver, namespace, &name);
            fields::put(&mut pod, *place, *carrier, field);
            // The other name of the account doesn't count beside the new one.
            let harmless = is_optional(field) || *field == r#"{"serviceAccount": "admin"}"#;
            let expected = if harmless { Expected::Harmless } else { expected };
            for (method, path, content_type, body) in [
                ("POST", pods.clone(), JSON, pod.to_string()),
                ("POST", pods.clone(), YAML, yaml::block(&pod)),
                ("PATCH", format!("{pods}/{name}?fieldManager=driver"), APPLY, pod.to_string()),
            ] {
                requests.push(Direct {
                    name: format!(
                        "a driver creates an executor with {field} of {carrier:?} by {method} {content_type}"
                    ),
                    rule,
                    method,
                    path,
                    content_type,
                    body,
                    expected,
                });
            }
        }
    }
    requests
}

/// Changes of an executor that was within the policy when it was created.
fn changes(namespace: &str, existing: &str) -> Vec<Direct> {
    let path = format!("/api/v1/namespaces/{namespace}/pods/{existing}");
    let refused = [
        ("images", json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "evil.example.org/miner"}])),
        ("tolerations", json!([{"op": "add", "path": "/spec/tolerations/-", "value": {"operator": "Exists"}}])),
        ("labels", json!([{"op": "add", "path": "/metadata/labels/app", "value": "frontend"}])),
        ("labels", json!([{"op": "replace", "path": "/metadata/labels/spark-role", "value": "driver"}])),
        ("labels", json!([{"op": "replace", "path": "/metadata/labels/spark-app-selector", "value": "spark-other"}])),
        ("labels", json!([{"op": "remove", "path": "/metadata/labels/sparkgate.dev~1submission-id"}])),
        (
            "annotations",
            json!([{"op": "add", "path": "/metadata/annotations", "value": {"blocked.example.org/a": "b"}}]),
        ),
        (
            "annotations",
            json!([{"op": "add", "path": "/metadata/annotations", "value": {"sparkgate.dev/identity": "b"}}]),
        ),
        ("structure", json!([{"op": "add", "path": "/metadata/finalizers", "value": ["example.org/hold"]}])),
        ("structure", json!([{"op": "remove", "path": "/metadata/ownerReferences"}])),
    ];
    let permitted = [
        ("labels", json!([{"op": "add", "path": "/metadata/labels/team", "value": "red"}])),
        ("labels", json!([{"op": "add", "path": "/metadata/labels/spark-exec-inactive", "value": "true"}])),
        ("annotations", json!([{"op": "add", "path": "/metadata/annotations", "value": {"example.org/a": "b"}}])),
        (
            "images",
            json!([{"op": "replace", "path": "/spec/containers/0/image", "value": "registry.example.org/team/b:2"}]),
        ),
    ];
    let change = |(rule, patch): (&'static str, Value), expected| Direct {
        name: format!("a driver changes an executor: {patch}"),
        rule,
        method: "PATCH",
        path: path.clone(),
        content_type: JSON_PATCH,
        body: patch.to_string(),
        expected,
    };
    let refused = refused.into_iter().map(|patch| change(patch, Expected::Refused));
    let permitted = permitted.into_iter().map(|patch| change(patch, Expected::Passes));
    let mut changes: Vec<Direct> = refused.chain(permitted).collect();
    let debug = json!({"spec": {"ephemeralContainers": [{"name": "e", "image": "registry.example.org/team/a:1"}]}});
    for (subresource, content_type, body) in [
        ("ephemeralcontainers", "application/strategic-merge-patch+json", debug),
        ("status", MERGE, json!({"status": {"phase": "Succeeded"}})),
        ("resize", MERGE, json!({"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "64"}}}]}})),
    ] {
        changes.push(Direct {
            name: format!("a driver changes {subresource} of an executor"),
            rule: "structure",
            method: "PATCH",
            path: format!("{path}/{subresource}"),
            content_type,
            body: body.to_string(),
            expected: Expected::Refused,
        });
    }
    changes
}

/// Other ways to a pod, and to what pods may not refer to.
fn detours(driver: &Value, namespace: &str) -> Vec<Direct> {
    let mut pod = executor(driver, namespace, "detour");
    pod["spec"]["hostNetwork"] = json!(true);
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": pod["spec"]});
    let selector = json!({"matchLabels": {"app": "a"}});
    let workload = |kind: &str| {
        json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "detour"},
        "spec": {"selector": selector, "serviceName": "s", "template": template}})
    };
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "detour"}, "spec": {"template": template}});
    let controller = json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "detour"},
        "spec": {"selector": {"app": "a"}, "template": template}});
    let other = |group: &str, plural: &str, body: Value| Direct {
        name: format!("a driver creates {plural}"),
        rule: "structure",
        method: "POST",
        path: format!("{group}/namespaces/{namespace}/{plural}"),
        content_type: JSON,
        body: body.to_string(),
        expected: Expected::Refused,
    };
    let claim = |spec: Value| {
        let mut claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "detour", "ownerReferences": [played::owner(driver)]},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard", "resources": {"requests": {"storage": "1Gi"}}},
        });
        claim["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        claim
    };
    let claims = [
        json!({"volumeName": "of-another-team"}),
        json!({"selector": {"matchLabels": {"team": "other"}}}),
        json!({"storageClassName": "root"}),
        json!({"storageClassName": ""}),
        json!({"dataSource": {"kind": "PersistentVolumeClaim", "name": "root"}}),
        json!({"resources": {"requests": {"storage": "100Ti"}}}),
    ];
    let own = format!("/api/v1/namespaces/{namespace}/pods/{}", driver["metadata"]["name"].as_str().unwrap());
    let orphans = ["propagationPolicy=Orphan", "orphanDependents=true"].map(|option| Direct {
        name: format!("a driver deletes itself with {option}"),
        rule: "structure",
        method: "DELETE",
        path: format!("{own}?{option}"),
        content_type: JSON,
        body: String::new(),
        expected: Expected::Refused,
    });
    let claims = claims.map(|spec| Direct {
        name: format!("a driver creates a claim with {spec}"),
        rule: "claims",
        ..other("/api/v1", "persistentvolumeclaims", claim(spec))
    });
    let mine = Direct { expected: Expected::Passes, ..other("/api/v1", "persistentvolumeclaims", claim(json!({}))) };
    let no_pod = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "detour"}});
    let mut unowned = executor(driver, namespace, "unowned");
    unowned["metadata"]["ownerReferences"] = json!([]);
    let mut named = executor(driver, namespace, "detour");
    named["metadata"]["namespace"] = json!("kube-system");
    let mut detours = vec![
        mine,
        other("/apis/apps/v1", "deployments", workload("Deployment")),
        other("/apis/apps/v1", "statefulsets", workload("StatefulSet")),
        other("/apis/apps/v1", "daemonsets", workload("DaemonSet")),
        other("/apis/apps/v1", "replicasets", workload("ReplicaSet")),
        other("/apis/batch/v1", "jobs", job),
        other("/api/v1", "replicationcontrollers", controller),
        other("/api/v1", "pods", unowned),
        other("/api/v1", "secrets", no_pod("Secret")),
        other("/api/v1", "serviceaccounts", no_pod("ServiceAccount")),
        Direct { path: "/api/v1/namespaces/kube-system/pods".to_owned(), ..other("/api/v1", "pods", named) },
        Direct {
            path: format!("/api/v1/namespaces/{namespace}/serviceaccounts/admin/token"),
            ..other(
                "/api/v1",
                "tokens",
                json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}),
            )
        },
    ];
    detours.extend(orphans);
    detours.extend(claims);
    detours
}
