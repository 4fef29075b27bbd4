//! Creates or takes over the Node object at the start, and keeps it Ready.

use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::core::v1::Node as NodeObject;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::Node;
use super::status::HOST;

/// A kubelet's interval; a node controller marks a node as unknown after 40 seconds without a heartbeat.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Creates the Node, or updates the status of an existing one.
pub(super) async fn register(client: &Client, name: &str, port: u16) -> anyhow::Result<()> {
    let api = Api::<NodeObject>::all(client.clone());
    let object = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "status": status(port),
    });
    let object: NodeObject = serde_json::from_value(object).context("cannot build the Node object")?;
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            beat(&api, name, port).await.with_context(|| format!("cannot take over node {name:?}"))
        }
        Err(error) => Err(error).with_context(|| format!("cannot register node {name:?}")),
    }
}

/// Renews the Ready condition forever. A Node that was deleted is created again.
pub(super) async fn keep_ready(node: &Node, port: u16) {
    let api = Api::<NodeObject>::all(node.client.clone());
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        match beat(&api, &node.name, port).await {
            Ok(()) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                if let Err(error) = register(&node.client, &node.name, port).await {
                    tracing::warn!(%error, "the sandbox's Node was deleted and can't be created again");
                }
            }
            Err(error) => tracing::debug!(%error, "cannot report the node ready"),
        }
    }
}

async fn beat(api: &Api<NodeObject>, name: &str, port: u16) -> Result<(), kube::Error> {
    let patch = json!({ "status": status(port) });
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
}

fn status(port: u16) -> Value {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let capacity = json!({"cpu": cpus.to_string(), "pods": "110"});
    json!({
        "addresses": [{"type": "InternalIP", "address": HOST}, {"type": "Hostname", "address": "localhost"}],
        "allocatable": capacity,
        "capacity": capacity,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "SandboxReady", "message": "pods run as processes of this machine",
            "lastHeartbeatTime": Timestamp::now().to_string(),
        }],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    })
}
