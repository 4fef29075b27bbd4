//! What the chart renders, on a real kube-apiserver: it knows every field, and the pods meet the Pod Security level `restricted`.

use std::collections::BTreeSet;

use kube::Client;
use serde_json::{Value, json};
use sparkgate_testing::kube_apiserver::KubeApiserver;

use crate::chart::helm::{MANIFESTS, TENANTS, template};

#[tokio::test]
async fn kubernetes_accepts_every_object() {
    let client = KubeApiserver::start().await.admin().await;
    create_namespace(&client, "restricted").await;
    for values in [MANIFESTS, TENANTS] {
        let objects = template(&["--values", values, "--set", "drivers.createNamespaces=false"]);
        let namespaces: BTreeSet<&str> =
            objects.iter().filter_map(|object| object["metadata"]["namespace"].as_str()).collect();
        for namespace in namespaces.into_iter().filter(|name| *name != "kube-system") {
            create_namespace(&client, namespace).await;
        }
        for object in template(&["--values", values]) {
            try_to_create(&client, &object).await;
            if let Some(pod) = pod_of(&object) {
                try_to_create(&client, &pod).await;
            }
        }
    }
}

/// Returns a pod of a Deployment or a Job, in the namespace that permits only the level `restricted`.
fn pod_of(workload: &Value) -> Option<Value> {
    let mut pod = workload["spec"].get("template")?.clone();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = workload["metadata"]["name"].clone();
    pod["metadata"]["namespace"] = json!("restricted");
    // The class is not in this cluster.
    pod["spec"].as_object_mut()?.remove("priorityClassName");
    Some(pod)
}

/// Creates a namespace. One that exists is left as it is.
async fn create_namespace(client: &Client, name: &str) {
    let level = if name == "restricted" { "restricted" } else { "baseline" };
    let labels = json!({"pod-security.kubernetes.io/enforce": level});
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    match post(client, "/api/v1/namespaces", &object).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Creates an object as a dry run. Unknown and repeated fields are errors.
async fn try_to_create(client: &Client, object: &Value) {
    let path = format!("{}?dryRun=All&fieldValidation=Strict", collection(object));
    match post(client, &path, object).await {
        Ok(_) => {}
        // The namespaces of drivers.
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
        Err(error) => panic!("{path}: {error}\n{object:#}"),
    }
}

async fn post(client: &Client, path: &str, object: &Value) -> Result<String, kube::Error> {
    let request = http::Request::post(path).header("content-type", "application/json");
    client.request_text(request.body(object.to_string().into_bytes()).unwrap()).await
}

/// Returns the path of the collection to which an object belongs.
fn collection(object: &Value) -> String {
    let version = object["apiVersion"].as_str().unwrap();
    let root = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
    let kind = object["kind"].as_str().unwrap().to_lowercase();
    let plural = kind.strip_suffix('y').map_or_else(|| format!("{kind}s"), |stem| format!("{stem}ies"));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}"),
        None => format!("{root}/{plural}"),
    }
}
