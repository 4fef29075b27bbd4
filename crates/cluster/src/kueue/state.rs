//! A `Workload` as Kueue has judged it.

use chrono::{DateTime, Utc};
use kube::api::DynamicObject;
use sparkgate_submission::{Installation, SubmissionId};

use super::{
    admission::Admission,
    api::EXECUTOR,
    parts::{Condition, Parts},
    pending::{self, PendingReason},
    request::signed_name,
};
use crate::{error::Error, labels};

/// A `Workload` that the gateway owns.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    pub name: String,
    pub uid: String,
    /// The attempt that it belongs to.
    pub submission: SubmissionId,
    pub attempt: i32,
    /// The `LocalQueue` that it waits in.
    pub local_queue: String,
    pub state: WorkloadState,
    /// Kueue knows that the pods run.
    pub is_ready: bool,
    /// The number of executors without which it isn't admitted.
    pub least_executors: u32,
}

/// How Kueue has judged a `Workload`.
#[derive(Debug, Clone, PartialEq)]
pub enum WorkloadState {
    /// It isn't admitted, or not yet.
    Pending {
        reason: PendingReason,
        message: String,
    },
    Admitted(Admission),
    /// Its quota is being taken back. Kueue counts it as used until the `Workload` is deleted.
    Evicted {
        reason: EvictionReason,
        message: String,
        /// Before this time Kueue doesn't admit it again.
        requeue_at: Option<DateTime<Utc>>,
    },
    /// An operator or Kueue has deactivated it: it isn't admitted until it is activated again.
    Deactivated {
        message: String,
    },
    /// Another client has ended it.
    Finished {
        message: String,
    },
}

/// Why Kueue takes quota back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvictionReason {
    Preempted,
    PodsReadyTimeout,
    AdmissionCheck,
    ClusterQueueStopped,
    LocalQueueStopped,
    NodeFailures,
    Deactivated,
    /// One of a later release.
    Other(String),
}

impl Workload {
    /// Reads a `Workload`; `None` if its identity doesn't prove that it belongs to an attempt of this installation.
    ///
    /// # Errors
    /// The object isn't one of Kueue's.
    pub(super) fn read(object: DynamicObject, installation: &Installation) -> Result<Option<Self>, Error> {
        let (metadata, name) = (object.metadata, "reading a Workload");
        let parts: Parts = serde_json::from_value(object.data)
            .map_err(|error| Error::Unavailable { action: name.to_owned(), source: Box::new(error) })?;
        let place = metadata.namespace.as_deref().zip(metadata.name.as_deref());
        let identity = metadata.annotations.as_ref().and_then(|all| all.get(labels::IDENTITY));
        let attempt = place
            .zip(identity)
            .and_then(|((namespace, name), identity)| installation.verify(identity, namespace, &signed_name(name)));
        let Some((((submission, attempt), name), uid)) = attempt.zip(metadata.name.clone()).zip(metadata.uid) else {
            return Ok(None);
        };
        let is_ready = parts.status.holds("PodsReady").is_some();
        let executors = parts.spec.pod_sets.iter().find(|set| set.name == EXECUTOR);
        let least_executors = executors.map_or(0, |set| set.min_count.unwrap_or(set.count));
        let local_queue = parts.spec.queue_name.clone();
        let state = parts.into_state();
        Ok(Some(Self { name, uid, submission, attempt, local_queue, state, is_ready, least_executors }))
    }
}

impl Parts {
    /// Kueue keeps the conditions of earlier states: the later ones come first here.
    pub(super) fn into_state(self) -> WorkloadState {
        let Self { spec, status } = &self;
        let message = |condition: &Condition| condition.message.clone();
        if let Some(finished) = status.holds("Finished") {
            return WorkloadState::Finished { message: message(finished) };
        }
        let evicted = status.holds("Evicted");
        if spec.active == Some(false) {
            let words = evicted.map_or_else(|| "The workload is deactivated".to_owned(), message);
            return WorkloadState::Deactivated { message: words };
        }
        if let Some(evicted) = evicted {
            return WorkloadState::Evicted {
                reason: EvictionReason::from_word(&evicted.reason),
                message: message(evicted),
                requeue_at: status.requeue_state.as_ref().and_then(|requeue| requeue.requeue_at),
            };
        }
        if status.holds("Admitted").is_some()
            && let Some(admission) = self.status.admission.clone()
        {
            let updates = self.status.admission_checks.into_iter().flat_map(|check| check.pod_set_updates).collect();
            return WorkloadState::Admitted(Admission { updates, ..admission });
        }
        if status.holds("QuotaReserved").is_some() {
            let open = status.admission_checks.iter().filter(|check| check.state != "Ready");
            let checks: Vec<_> =
                open.map(|check| format!("{} ({}) {}", check.name, check.state, check.message)).collect();
            let message = format!("quota is reserved; admission checks: {}", checks.join(", "));
            return WorkloadState::Pending { reason: PendingReason::AdmissionChecks, message };
        }
        match status.condition("QuotaReserved") {
            Some(condition) => {
                let reason = pending::reason(condition, spec, status);
                WorkloadState::Pending { reason, message: message(condition) }
            }
            None => WorkloadState::Pending { reason: PendingReason::Unseen, message: String::new() },
        }
    }
}

impl EvictionReason {
    fn from_word(word: &str) -> Self {
        match word {
            "Preempted" => Self::Preempted,
            "PodsReadyTimeout" => Self::PodsReadyTimeout,
            "AdmissionCheck" => Self::AdmissionCheck,
            "ClusterQueueStopped" => Self::ClusterQueueStopped,
            "LocalQueueStopped" => Self::LocalQueueStopped,
            "NodeFailures" => Self::NodeFailures,
            // Later releases append the cause: `DeactivatedDueToRequeuingLimitExceeded`.
            word if word.starts_with("Deactivated") => Self::Deactivated,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Returns Kueue's word.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Preempted => "Preempted",
            Self::PodsReadyTimeout => "PodsReadyTimeout",
            Self::AdmissionCheck => "AdmissionCheck",
            Self::ClusterQueueStopped => "ClusterQueueStopped",
            Self::LocalQueueStopped => "LocalQueueStopped",
            Self::NodeFailures => "NodeFailures",
            Self::Deactivated => "Deactivated",
            Self::Other(word) => word,
        }
    }
}
