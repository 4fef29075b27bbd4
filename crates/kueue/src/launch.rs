//! The admission of an attempt, under its claim.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Kueue;
use sparkgate_access::KueueQueue;
use sparkgate_cluster::{
    Error as ClusterError, Manifest, Overlay,
    kueue::{self, Admission, Executors, PendingReason, Workload, WorkloadRequest, WorkloadState, placements},
};
use sparkgate_common::error::error_chain;
use sparkgate_core::{
    judgement::{executors_of, refusal_of_changed},
    ports::{Attempt, LaunchChange, NoLaunch, Resolution, Wait},
};
use sparkgate_policy::{ExecutorCount, ExecutorSet};

/// Kueue isn't installed.
const MISSING: &str = "KueueMissing";
/// Kueue, or the API server, doesn't answer.
const UNAVAILABLE: &str = "KueueUnavailable";
/// An operator has deactivated the `Workload`.
const DEACTIVATED: &str = "Deactivated";
/// The `Workload` can't be created, or what Kueue assigns contradicts the request.
const REFUSED: &str = "KueueRefused";

/// The executors of an attempt, and the property that limits their number if Kueue may admit fewer.
type Asked = (Option<Executors>, Option<&'static str>);

/// Why an attempt isn't launched now.
enum Stop {
    Resolution(Box<Resolution>),
    Cluster(ClusterError),
}

impl From<ClusterError> for Stop {
    fn from(error: ClusterError) -> Self {
        Self::Cluster(error)
    }
}

impl From<NoLaunch> for Stop {
    fn from(why: NoLaunch) -> Self {
        Self::Resolution(Box::new(Resolution::Refused(why)))
    }
}

fn held(reason: &'static str, message: impl Into<String>) -> Stop {
    Stop::Resolution(Box::new(Resolution::Held(Wait { reason, result: "no_room", message: message.into() })))
}

fn refused(reason: &'static str, message: String) -> Stop {
    NoLaunch { reason, message }.into()
}

impl Kueue {
    /// Launches an attempt that Kueue has admitted, with the places and the number of executors that it was admitted with.
    pub(super) async fn admit(&self, queue: &KueueQueue, attempt: &Attempt<'_>, manifest: &mut Manifest) -> Resolution {
        match self.try_to_admit(queue, attempt, manifest).await {
            Ok(None) => Resolution::Ready,
            // Also one that changes nothing: what Kueue admitted may be followed by another attempt.
            Ok(Some(overlay)) => Resolution::Changed(Box::new(LaunchChange { by: "kueue", overlay })),
            Err(Stop::Resolution(resolution)) => *resolution,
            Err(Stop::Cluster(error)) => {
                self.forget_api().await;
                match error {
                    ClusterError::Refused { .. } | ClusterError::QuotaExceeded { .. } => {
                        Resolution::Refused(NoLaunch { reason: REFUSED, message: error_chain(&error) })
                    }
                    error => {
                        let message = error_chain(&error);
                        Resolution::Wait(Wait { reason: UNAVAILABLE, result: "retried", message })
                    }
                }
            }
        }
    }

    async fn try_to_admit(
        &self,
        queue: &KueueQueue,
        attempt: &Attempt<'_>,
        manifest: &mut Manifest,
    ) -> Result<Option<Overlay>, Stop> {
        let Some(kueue) = self.api().await? else {
            return Err(held(MISSING, "the cluster serves no API of Kueue that this release knows: install Kueue"));
        };
        let found = kueue.workload(attempt.namespace, attempt.pod).await?;
        if attempt.is_begun && found.is_none() {
            // The driver was created before its queue became one of Kueue, or it is ended because its Workload was deleted.
            return Ok(None);
        }
        let (executors, limit) = asked(executors_of(manifest)?)?;
        let workload = match found {
            Some(workload) if attempt.is_begun => workload,
            found => self.workload(&kueue, queue, attempt, manifest, (found, executors)).await?,
        };
        let admission = self.admission(&kueue, attempt, workload).await?;
        let overlay = overlay(&kueue, &admission, limit).await?;
        let changed = manifest.with_overlay(&overlay).map_err(|error| refused(REFUSED, error.to_string()))?;
        // What Kueue adds to the pods is the operator's, and yet the policy of the tenant may refuse it.
        if !attempt.is_begun
            && !overlay.is_empty()
            && let Some(refusal) = refusal_of_changed(&self.access, attempt.namespace, &changed)
        {
            return Err(Stop::Resolution(Box::new(refusal)));
        }
        *manifest = changed;
        Ok(Some(overlay))
    }

    /// Gives the quota of an attempt back that waits for room in its namespace. A pod of it may exist although its launch failed.
    pub(super) async fn give_back(&self, attempt: &Attempt<'_>) -> Result<(), ClusterError> {
        let &Attempt { id, number, namespace, pod, .. } = attempt;
        let Some(kueue) = self.api().await? else { return Ok(()) };
        let Some(workload) = kueue.workload(namespace, pod).await? else { return Ok(()) };
        if kueue.pods_of(namespace, id, number).await?.live > 0 {
            return Ok(());
        }
        tracing::debug!(submission = %id, attempt = number, "the Workload is deleted: the namespace has no room for the driver");
        kueue.delete_workload(namespace, &workload).await
    }

    /// Returns the `Workload` of an attempt of which nothing else exists. It is created if there is none yet, and if the namespace has
    /// room for the driver: otherwise others can use the quota.
    async fn workload(
        &self,
        kueue: &kueue::Kueue,
        queue: &KueueQueue,
        attempt: &Attempt<'_>,
        manifest: &Manifest,
        (found, executors): (Option<Workload>, Option<Executors>),
    ) -> Result<Workload, Stop> {
        let &Attempt { id, number, namespace, .. } = attempt;
        if !self.namespaces().contains(namespace) {
            let message = format!(
                "no tenant that may use its queue lists the namespace {namespace}: add it to the tenant, or to --namespaces"
            );
            return Err(held(PendingReason::Misconfigured.as_str(), message));
        }
        let workload = match found.filter(|there| there.submission == *id && there.attempt == number) {
            Some(there) => there,
            None => self.create(kueue, queue, attempt, manifest, executors).await?,
        };
        let local_queue = &queue.local_queue;
        // Its queue was renamed in the access file, or the submission was moved.
        if workload.local_queue != *local_queue && matches!(workload.state, WorkloadState::Pending { .. }) {
            kueue.delete_workload(namespace, &workload).await?;
            let message = format!("the Workload leaves the LocalQueue {} for {local_queue}", workload.local_queue);
            return Err(held(PendingReason::Unseen.as_str(), message));
        }
        Ok(workload)
    }

    async fn create(
        &self,
        kueue: &kueue::Kueue,
        queue: &KueueQueue,
        attempt: &Attempt<'_>,
        manifest: &Manifest,
        executors: Option<Executors>,
    ) -> Result<Workload, Stop> {
        let &Attempt { id, number, namespace, pod, .. } = attempt;
        let driver: Value = serde_json::from_str(manifest.pod.get())
            .map_err(|error| NoLaunch::unreadable(format!("the stored objects can't be read: {error}")))?;
        if let Some(full) = self.cluster.lack_of_room(namespace, &manifest.pod).await? {
            return Err(Stop::Resolution(Box::new(Resolution::NoRoom(error_chain(&full)))));
        }
        let priority_class = match &queue.priority_class {
            None => None,
            Some(class) => match kueue.priority(class).await? {
                Some(priority) => Some((class.as_str(), priority)),
                None => {
                    let message = format!("the WorkloadPriorityClass {class} doesn't exist: create it");
                    return Err(held(PendingReason::Misconfigured.as_str(), message));
                }
            },
        };
        let request = WorkloadRequest {
            id,
            attempt: number,
            namespace,
            name: pod,
            local_queue: &queue.local_queue,
            priority_class,
            driver: &driver,
            executors,
        };
        Ok(kueue.create_workload(&request).await?)
    }

    /// Returns what Kueue has admitted.
    async fn admission(
        &self,
        kueue: &kueue::Kueue,
        attempt: &Attempt<'_>,
        workload: Workload,
    ) -> Result<Admission, Stop> {
        let namespace = attempt.namespace;
        match &workload.state {
            WorkloadState::Admitted(admission) => Ok(admission.clone()),
            WorkloadState::Pending { reason: PendingReason::ExceedsMaxQuota, message } if !attempt.is_begun => {
                kueue.delete_workload(namespace, &workload).await?;
                let message = format!("Kueue can never admit it: {message}");
                Err(refused(PendingReason::ExceedsMaxQuota.as_str(), message))
            }
            WorkloadState::Pending { reason, message } if message.is_empty() => {
                Err(held(reason.as_str(), "Kueue has not judged the Workload yet"))
            }
            WorkloadState::Pending { reason, message } => Err(held(reason.as_str(), message.as_str())),
            WorkloadState::Deactivated { message } => {
                Err(held(DEACTIVATED, format!("{message}: set spec.active to true")))
            }
            // It was admitted, and nothing of the attempt exists: it joins the queue again, once its pause is over.
            WorkloadState::Evicted { requeue_at, reason, message } => {
                if !attempt.is_begun && requeue_at.is_none_or(|at| at <= chrono::Utc::now()) {
                    kueue.delete_workload(namespace, &workload).await?;
                }
                Err(held("Pending", format!("evicted ({}): {message}", reason.as_str())))
            }
            WorkloadState::Finished { message } => {
                if !attempt.is_begun {
                    kueue.delete_workload(namespace, &workload).await?;
                }
                Err(held("Pending", format!("the Workload was finished by another client: {message}")))
            }
        }
    }
}

/// Returns the executors to ask for.
fn asked(ExecutorSet { pod, count, .. }: ExecutorSet) -> Result<Asked, Stop> {
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let unfit = |property: &str, why: &str| {
        Err(refused(REFUSED, format!("Kueue reserves quota for all executors: {property} {why}")))
    };
    match count {
        ExecutorCount::Fixed(0) => Ok((None, None)),
        ExecutorCount::Fixed(count) => Ok((Some(Executors { pod, count: number(count), min_count: None }), None)),
        ExecutorCount::Dynamic { most: 0, .. } => Ok((None, None)),
        ExecutorCount::Dynamic { initial, most, property } => {
            let min_count = Some(number(initial.clamp(1, most)));
            Ok((Some(Executors { pod, count: number(most), min_count }), Some(property)))
        }
        ExecutorCount::Unbounded(property) => unfit(property, "must be set"),
        ExecutorCount::Unreadable(property) => unfit(property, "can't be read"),
    }
}

/// Returns the changes of the objects that an admission brings.
async fn overlay(kueue: &kueue::Kueue, admission: &Admission, limit: Option<&'static str>) -> Result<Overlay, Stop> {
    let mut flavors = BTreeMap::new();
    for name in admission.flavors() {
        let Some(flavor) = kueue.flavor(name).await? else {
            return Err(held(
                PendingReason::Misconfigured.as_str(),
                format!("the ResourceFlavor {name} doesn't exist"),
            ));
        };
        flavors.insert(name.to_owned(), flavor);
    }
    let mut overlay = placements(admission, &flavors).map_err(|error| refused(REFUSED, error.to_string()))?;
    if let Some((property, count)) = limit.zip(admission.executors()) {
        overlay.properties.insert(property.to_owned(), count.to_string());
    }
    Ok(overlay)
}
