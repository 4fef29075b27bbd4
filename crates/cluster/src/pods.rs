//! Reads, deletes and patches driver pods.

use std::{collections::BTreeMap, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
    core::PartialObjectMeta,
};
use serde_json::{Value, json};

use super::{
    answer::nothing_of_kubernetes,
    call::{call, find},
    cluster::Cluster,
    error::Error,
    labels,
    manifest::Manifest,
    manifest_object::TIMEOUT as WRITE,
    observe::observation_of,
    slim_pod::SlimPod,
};
use sparkgate_submission::{SubmissionId, engine::Found};

const TIMEOUT: Duration = Duration::from_secs(5);

impl Cluster {
    /// Reads the pod that has the name of an attempt's driver, from the API server itself and not from a cache. The pod's uid
    /// or its identity proves that it is that driver; the name alone proves nothing.
    pub async fn find_driver(
        &self,
        namespace: &str,
        pod: &str,
        id: &SubmissionId,
        attempt: i32,
    ) -> Result<Found, Error> {
        let pods: Api<SlimPod> = Api::namespaced(self.client.clone(), namespace);
        let action = format!("reading the driver pod {namespace}/{pod}");
        let Some(there) = find(action.clone(), TIMEOUT, pod, pods.get(pod)).await? else { return Ok(Found::Nothing) };
        let observed = observation_of(&there, (id.clone(), attempt), self.installation.as_deref());
        observed.map_or_else(|| Err(nothing_of_kubernetes(action)), |observed| Ok(Found::There(Box::new(observed))))
    }

    /// Returns whether exactly this pod exists, according to the API server itself.
    pub async fn pod_exists(&self, namespace: &str, pod: &str, uid: &str) -> Result<bool, Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let action = format!("looking for the pod {namespace}/{pod}");
        let Some(found) = find(action.clone(), TIMEOUT, pod, pods.get_metadata(pod)).await? else { return Ok(false) };
        found.metadata.uid.map_or_else(|| Err(nothing_of_kubernetes(action)), |found| Ok(found == uid))
    }

    /// Deletes exactly this pod, with a grace period in seconds or that of its spec; the objects that it owns are deleted with
    /// it. A pod that is already gone counts as deleted. The grace period is at least one second: with zero, Kubernetes would
    /// not report when the driver ended. Returns whether our finalizer still holds the pod.
    pub async fn delete_pod(&self, namespace: &str, pod: &str, uid: &str, grace: Option<i32>) -> Result<bool, Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let only = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
        let grace_period_seconds = grace.map(|seconds| seconds.max(1).unsigned_abs());
        let how = DeleteParams { preconditions: Some(only), grace_period_seconds, ..DeleteParams::background() };
        let action = format!("deleting the driver pod {namespace}/{pod}");
        match call(action.clone(), WRITE, pods.delete(pod, &how)).await {
            Ok(deleted) => match deleted.left() {
                Some(pod) if pod.metadata.uid.is_none() => Err(nothing_of_kubernetes(action)),
                Some(pod) => Ok(pod.finalizers().iter().any(|name| name == labels::FINALIZER)),
                // A `Status` of success.
                None => Ok(false),
            },
            Err(error) if is_gone(&error, pod) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// Restores on exactly this pod the labels by which an attempt's driver is watched, and its identity; with the manifest also
    /// what else of it marks the pod: the annotation with the driver's container, and our finalizer. A pod that is gone counts as
    /// success.
    pub async fn restore_labels(
        &self,
        namespace: &str,
        pod: &str,
        uid: &str,
        (id, attempt): (&SubmissionId, i32),
        manifest: Option<&Manifest>,
    ) -> Result<(), Error> {
        let Some(installation) = &self.installation else { return Ok(()) };
        let mut wanted: BTreeMap<_, _> = labels::of(id, attempt, installation).into();
        wanted.insert(labels::ROLE, labels::DRIVER.to_owned());
        let identity = installation.identity(id, attempt, namespace, pod);
        let mut annotations = BTreeMap::from([(labels::IDENTITY, identity)]);
        annotations.extend(manifest.and_then(Manifest::driver_container).map(|name| (labels::DRIVER_CONTAINER, name)));
        let mut metadata = json!({"uid": uid, "labels": wanted, "annotations": annotations});
        if manifest.is_some_and(Manifest::is_held) {
            metadata["finalizers"] = json!([labels::FINALIZER]);
        }
        self.patch_metadata("restoring the labels of", namespace, pod, json!({ "metadata": metadata })).await
    }

    /// Removes our finalizer from exactly this pod. A pod that is gone, or that never had the finalizer, counts as success.
    pub async fn remove_finalizer(&self, namespace: &str, pod: &str, uid: &str) -> Result<(), Error> {
        let without = json!({"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [labels::FINALIZER]}});
        self.patch_metadata("removing the finalizer from", namespace, pod, without).await
    }

    /// Patches the metadata of a pod whose uid the patch names.
    async fn patch_metadata(&self, doing: &str, namespace: &str, pod: &str, patch: Value) -> Result<(), Error> {
        let pods: Api<PartialObjectMeta<Pod>> = Api::namespaced(self.client.clone(), namespace);
        let action = format!("{doing} the driver pod {namespace}/{pod}");
        let how = PatchParams::default();
        match call(action.clone(), WRITE, pods.patch_metadata(pod, &how, &Patch::Strategic(patch))).await {
            Ok(patched) if patched.metadata.uid.is_none() => Err(nothing_of_kubernetes(action)),
            Ok(_) => Ok(()),
            Err(error) if is_gone(&error, pod) => Ok(()),
            Err(other) => Err(other),
        }
    }
}

/// Returns whether the API server says that the pod doesn't exist, or that its name belongs to another pod now: the uid that the
/// request requires, or that a patch would set, isn't that pod's.
pub(super) fn is_gone(error: &Error, pod: &str) -> bool {
    match error {
        Error::NotFound { name, .. } => name == pod,
        Error::Conflict { message, .. } => is_of_another_uid(message),
        Error::Refused { code: 422, message, .. } => message.contains("metadata.uid"),
        _ => false,
    }
}

/// Returns whether a conflict is about the uid (`BeforeDelete`, `Preconditions.Check`), and not with another client's write.
pub(super) fn is_of_another_uid(message: &str) -> bool {
    message.contains("UID in the precondition") || message.contains("UID in precondition")
}
