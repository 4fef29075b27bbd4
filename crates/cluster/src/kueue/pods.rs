//! The pods of an attempt that Kueue has admitted, or has evicted.

use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
    core::PartialObjectMeta,
};
use serde_json::json;
use sparkgate_submission::{EVICTED_BY_KUEUE, SubmissionId};

use super::{api::Kueue, calls::condition};
use crate::{
    call::call,
    error::Error,
    executor_pod::EXECUTOR,
    labels,
    manifest_object::TIMEOUT as WRITE,
    pods::is_gone,
    slim_pod::{ContainerStatus, SlimPod},
};

/// Timeout for a list of the pods of one attempt.
const LIST: Duration = Duration::from_secs(10);

/// The pods of an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AttemptPods {
    /// Pods that have not ended.
    pub live: usize,
    pub driver_runs: bool,
    pub running_executors: usize,
}

impl Kueue {
    /// Returns the pods of an attempt, from the API server itself and not from a cache.
    pub async fn pods_of(&self, namespace: &str, id: &SubmissionId, attempt: i32) -> Result<AttemptPods, Error> {
        let pods: Api<SlimPod> = Api::namespaced(self.cluster.client.clone(), namespace);
        let selector = format!("{},{}={id},{}={attempt}", self.selector(), labels::SUBMISSION_ID, labels::ATTEMPT);
        let action = format!("listing the pods of an attempt in the namespace {namespace}");
        let found = call(action, LIST, pods.list(&ListParams::default().labels(&selector))).await?;
        let mut seen = AttemptPods::default();
        for pod in found {
            if matches!(pod.status.phase.as_deref(), Some("Succeeded" | "Failed")) {
                continue;
            }
            seen.live += 1;
            let runs = |status: &ContainerStatus| status.state.as_ref().is_some_and(|state| state.running.is_some());
            let runs = pod.status.container_statuses.iter().flatten().any(runs);
            match pod.label(labels::ROLE) {
                Some(EXECUTOR) => seen.running_executors += usize::from(runs),
                _ => seen.driver_runs |= runs,
            }
        }
        Ok(seen)
    }

    /// Ends the driver pod of an attempt whose quota Kueue takes back. The condition on the pod says why, also to a gateway that is
    /// started later; the attempt that it ends is followed by another. A pod that is gone counts as success.
    pub async fn evict_driver(
        &self,
        namespace: &str,
        (pod, uid): (&str, &str),
        why: &str,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let pods: Api<PartialObjectMeta<Pod>> = Api::namespaced(self.cluster.client.clone(), namespace);
        let condition = condition("DisruptionTarget", EVICTED_BY_KUEUE, why, now);
        let patch = json!({ "metadata": { "uid": uid }, "status": { "conditions": [condition] } });
        let action = format!("marking the driver pod {namespace}/{pod} as evicted");
        let how = PatchParams::default();
        let marked = call(action, WRITE, pods.patch_status(pod, &how, &Patch::Strategic(patch))).await;
        match marked {
            Err(error) if is_gone(&error, pod) => return Ok(()),
            other => other.map(drop)?,
        }
        self.cluster.delete_pod(namespace, pod, uid, None).await.map(drop)
    }
}
