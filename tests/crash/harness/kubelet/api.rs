//! The requests of a kubelet and a scheduler to the API server, each repeated until it is answered.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::harness::servers::NODE;

#[derive(Clone)]
pub(super) struct PodsApi {
    pub(super) pods: Api<Pod>,
    config_maps: Api<ConfigMap>,
}

impl PodsApi {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { pods: Api::namespaced(client.clone(), namespace), config_maps: Api::namespaced(client, namespace) }
    }

    /// Binds the pod to a node. A conflict means that it is already bound.
    pub(super) async fn bind(&self, name: &str) {
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"kind": "Node", "name": NODE}});
        let how = PostParams::default();
        insist(|| self.pods.create_subresource::<_, Value>("binding", name, &how, &binding)).await;
    }

    pub(super) async fn has_config_map(&self, name: &str) -> bool {
        insist(|| self.config_maps.get_metadata_opt(name)).await.flatten().is_some()
    }

    pub(super) async fn patch_status(&self, name: &str, uid: &str, status: Value) {
        let patch = Patch::Merge(json!({"metadata": {"uid": uid}, "status": status}));
        let how = PatchParams::default();
        insist(|| self.pods.patch_status(name, &how, &patch)).await;
    }

    pub(super) async fn delete(&self, name: &str, uid: &str, grace_seconds: u32) {
        let only_this = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let how = DeleteParams::default().grace_period(grace_seconds).preconditions(only_this);
        insist(|| self.pods.delete(name, &how)).await;
    }
}

/// Repeats a call until it is answered. `None` if the object doesn't exist, or another one has replaced it.
async fn insist<T, F>(call: impl Fn() -> F) -> Option<T>
where
    F: Future<Output = Result<T, kube::Error>>,
{
    loop {
        match timeout(Duration::from_secs(10), call()).await {
            Ok(Ok(answer)) => return Some(answer),
            Ok(Err(kube::Error::Api(status))) if status.code == 404 || is_settled(&status.message) => return None,
            Ok(Err(kube::Error::Api(status))) if status.code == 422 => panic!("the kubelet is refused: {status:?}"),
            Ok(Err(_)) | Err(_) => sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Returns whether the conflict is permanent: another pod has the name, or the pod is already bound.
fn is_settled(message: &str) -> bool {
    // The uid of a patch is validated as a field of the pod that has the name now, if it was replaced in between.
    ["UID in precondition", "metadata.uid: Invalid value", "is already assigned to node"]
        .iter()
        .any(|settled| message.contains(settled))
}
