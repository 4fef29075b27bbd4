//! The baseline: a client that creates the objects of each driver as spark-submit does, keeps nothing, and watches nothing.

use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use sparkgate::app::render::render;

use super::{AT_ONCE, NAMESPACES};
use crate::{
    figures::{request::request, spark::settings},
    load::kubernetes::Client,
};

/// The objects of one driver: the pod first.
pub(super) struct Rendered {
    pod: String,
    beside: Vec<Value>,
    namespace: &'static str,
}

/// Renders them before it counts.
pub(super) fn rendered(jobs: usize) -> anyhow::Result<Vec<Rendered>> {
    let settings = settings();
    let one = |n: usize| -> anyhow::Result<Rendered> {
        let namespace = NAMESPACES[n % NAMESPACES.len()];
        let list = render(&request(n, namespace), &settings)?;
        let mut items = list["items"].as_array().into_iter().flatten().cloned();
        let pod = items.next().unwrap_or_default().to_string();
        Ok(Rendered { pod, beside: items.collect(), namespace })
    };
    (0..jobs).map(one).collect()
}

pub(super) async fn launch(client: &Client, jobs: usize) -> anyhow::Result<()> {
    launch_all(client, rendered(jobs)?).await
}

pub(super) async fn launch_all(client: &Client, jobs: Vec<Rendered>) -> anyhow::Result<()> {
    stream::iter(jobs).map(|job| create(client, job)).buffer_unordered(AT_ONCE).try_collect().await
}

async fn create(client: &Client, job: Rendered) -> anyhow::Result<()> {
    let Rendered { pod, beside, namespace } = job;
    let created = client.post(&format!("/api/v1/namespaces/{namespace}/pods"), pod).await?;
    let created: Value = serde_json::from_slice(&created)?;
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": created["metadata"]["name"],
        "uid": created["metadata"]["uid"], "controller": true}]);
    for mut object in beside {
        object["metadata"]["ownerReferences"] = owner.clone();
        let path = match object["kind"].as_str() {
            Some("Service") => format!("/api/v1/namespaces/{namespace}/services"),
            Some("NetworkPolicy") => format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"),
            _ => format!("/api/v1/namespaces/{namespace}/configmaps"),
        };
        client.post(&path, object.to_string()).await?;
    }
    Ok(())
}
