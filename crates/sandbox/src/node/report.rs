//! A worker's calls to the API server about its own pod. Each is retried until it has a final answer.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use k8s_openapi::api::core::v1::{Binding, ObjectReference, Pod, PodStatus};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::ObjectMeta;
use kube::{Api, Client};
use serde_json::json;

/// The back-off between retries doubles from the first to the last.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LAST_WAIT: Duration = Duration::from_secs(5);
const CALL: Duration = Duration::from_secs(30);

/// Reports on one pod, identified by its uid: a later pod of the same name isn't touched.
pub(super) struct Reporter {
    api: Api<Pod>,
    name: String,
    uid: String,
    last: Option<PodStatus>,
}

impl Reporter {
    pub(super) fn new(client: Client, namespace: &str, name: &str, uid: &str) -> Self {
        let api = Api::namespaced(client, namespace);
        Self { api, name: name.to_owned(), uid: uid.to_owned(), last: None }
    }

    /// Binds the pod to a node, as a scheduler does.
    pub(super) async fn bind(&self, node: &str) {
        let target = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Node".to_owned()),
            name: Some(node.to_owned()),
            ..Default::default()
        };
        let metadata = ObjectMeta { name: Some(self.name.clone()), uid: Some(self.uid.clone()), ..Default::default() };
        let binding = Binding { metadata, target };
        self.insist("bind", || async {
            let post = PostParams::default();
            self.api.create_subresource("binding", &self.name, &post, &binding).await.map(|_: serde_json::Value| ())
        })
        .await;
    }

    /// Writes the status, unless it equals the last one that was written.
    pub(super) async fn status(&mut self, status: PodStatus) {
        if self.last.as_ref() == Some(&status) {
            return;
        }
        let patch = json!({ "metadata": {"uid": self.uid}, "status": status });
        self.insist("report the status of", || async {
            self.api.patch_status(&self.name, &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
        })
        .await;
        self.last = Some(status);
    }

    /// Removes the object after its containers have ended; an object with finalizers stays until these are removed.
    pub(super) async fn delete(&self) {
        let preconditions = Preconditions { uid: Some(self.uid.clone()), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }.grace_period(0);
        self.insist("delete", || async { self.api.delete(&self.name, &params).await.map(drop) }).await;
    }

    /// Retries a call until it succeeds, or until the pod is gone, replaced, or bound to another node.
    async fn insist<F, R>(&self, what: &str, call: F)
    where
        F: Fn() -> R,
        R: Future<Output = Result<(), kube::Error>>,
    {
        let pauses = ExponentialBuilder::new().with_min_delay(FIRST_WAIT).with_max_delay(LAST_WAIT).without_max_times();
        for pause in pauses.build() {
            match tokio::time::timeout(CALL, call()).await {
                Ok(Ok(())) => return,
                Ok(Err(kube::Error::Api(status))) if (400..500).contains(&status.code) && status.code != 429 => {
                    if !matches!(status.code, 404 | 409) {
                        tracing::warn!(pod = self.name, error = %status, "the API server refused to {what} a pod");
                    }
                    return;
                }
                Ok(Err(error)) => tracing::debug!(pod = self.name, %error, "cannot {what} a pod, retrying"),
                Err(_) => tracing::debug!(pod = self.name, "no answer in time to: {what} a pod, retrying"),
            }
            tokio::time::sleep(pause).await;
        }
    }
}
