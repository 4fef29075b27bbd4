//! The baseline: a client that creates the same objects as the gateway, in the same order, but stores nothing and
//! watches nothing.

use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json};
use sparkgate::{app::render::driver, cluster::OwnershipLabels, spark::rest::parse_partial, submission::Installation};
use sparkgate_testing::request::request;
use uuid::Uuid;

use super::{AT_ONCE, NAMESPACES};
use crate::{figures::spark::settings, load::kubernetes::Client, servers::rows};

/// The objects of one driver. The pod comes first.
pub(super) struct Rendered {
    pod: String,
    beside: Vec<Value>,
    namespace: &'static str,
}

/// The fields that are read of a created pod.
#[derive(Deserialize)]
struct Created {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    uid: String,
}

/// Renders the jobs' objects before the measurement. Their labels name a gateway that doesn't exist, so no gateway
/// watches them.
pub(super) fn rendered(jobs: usize) -> anyhow::Result<Vec<Rendered>> {
    let (settings, installation) = (settings(), Installation::new(Uuid::new_v4(), vec![7; 32]));
    let one = |n: usize| -> anyhow::Result<Rendered> {
        let namespace = NAMESPACES[n % NAMESPACES.len()];
        let (mut request, _) = parse_partial(&request(n, namespace), settings.version)?;
        let ownership = OwnershipLabels {
            submission: rows::id(n).parse()?,
            attempt: 1,
            installation: &installation,
            finalizer: true,
        };
        request.spark_properties.extend(ownership.executor_properties());
        let mut driver = driver(request, &settings)?;
        let name = driver.pod.metadata.name.clone().unwrap_or_default();
        ownership.put_on(&mut driver, &name);
        let list = driver.to_list()?;
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
    let Created { metadata: Metadata { name, uid } } = serde_json::from_slice(&created)?;
    let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid, "controller": true}]);
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
