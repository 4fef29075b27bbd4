//! Looking up and deleting driver pods.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    core::PartialObjectMeta,
};

use serde_json::json;

use super::{Cluster, Error, create::TIMEOUT as WRITE, error::call, labels, observe::observation, slim_pod::SlimPod};
use crate::submission::{SubmissionId, engine::Found};

const TIMEOUT: Duration = Duration::from_secs(5);

impl Cluster {
    /// Reads the pod under a driver's name, from the API server itself and not from a cache.
    pub async fn find_driver(
        &self,
        namespace: &str,
        pod: &str,
        id: &SubmissionId,
        attempt: i32,
    ) -> Result<Found, Error> {
        let pods: Api<SlimPod> = Api::namespaced(self.client.clone(), namespace);
        let action = format!("reading the driver pod {namespace}/{pod}");
        let Some(there) = call(action, TIMEOUT, pods.get_opt(pod)).await? else { return Ok(Found::Nothing) };
        Ok(match observation(&there, false) {
            Some(seen) if seen.submission == *id && seen.attempt == attempt => Found::Ours(Box::new(seen)),
            Some(_) | None => Found::Foreign,
        })
    }

    /// Whether exactly this pod is there, by the API server itself.
    pub async fn pod_exists(&self, namespace: &str, pod: &str, uid: &str) -> Result<bool, Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let found = call(format!("looking for the pod {namespace}/{pod}"), TIMEOUT, pods.get_metadata_opt(pod)).await?;
        Ok(found.is_some_and(|found| found.metadata.uid.as_deref() == Some(uid)))
    }

    /// Deletes exactly this pod, with a grace period in seconds or that of its spec; what it owns goes with it. A pod that
    /// is already gone counts as deleted. The period is one second at least: with none, nobody would tell when the driver ended.
    pub async fn delete_pod(&self, namespace: &str, pod: &str, uid: &str, grace: Option<i32>) -> Result<(), Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let only = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let grace_period_seconds = grace.map(|seconds| seconds.max(1).unsigned_abs());
        let how = DeleteParams { preconditions: Some(only), grace_period_seconds, ..DeleteParams::background() };
        let action = format!("deleting the driver pod {namespace}/{pod}");
        match call(action, WRITE, pods.delete(pod, &how)).await {
            // Conflict: the name belongs to another pod now, ours is gone.
            Ok(_) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Takes our finalizer from exactly this pod. A pod that is gone, or that never had it, counts as let go.
    pub async fn let_go(&self, namespace: &str, pod: &str, uid: &str) -> Result<(), Error> {
        let pods: Api<PartialObjectMeta<Pod>> = Api::namespaced(self.client.clone(), namespace);
        let without = json!({"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [labels::FINALIZER]}});
        let action = format!("taking the finalizer from the driver pod {namespace}/{pod}");
        match call(action, WRITE, pods.patch_metadata(pod, &PatchParams::default(), &Patch::Strategic(without))).await {
            Ok(_) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => Ok(()),
            // The name belongs to another pod now: its uid can't be changed to ours, says the API server.
            Err(Error::Refused { code: 422, message, .. }) if message.contains("metadata.uid") => Ok(()),
            Err(other) => Err(other),
        }
    }
}
