//! The stored form of an executor, and the rule that derives it from an observation of its pod.

use chrono::{DateTime, Utc};

use super::{ExecutorKey, ExecutorObservation, exit_code::spark_words, state::ExecutorState};
use crate::{
    id::SubmissionId,
    kept,
    observation::{Container, Phase},
    reservation::Reservation,
};

/// An executor as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutorRecord {
    pub submission: SubmissionId,
    pub attempt: i32,
    pub executor_id: i64,
    /// The uid of the driver that created it; unknown if the pod no longer exists.
    pub driver_uid: Option<String>,
    pub pod_name: String,
    pub pod_uid: String,
    pub state: ExecutorState,
    /// Exit code of Spark's container.
    pub exit_code: Option<i32>,
    /// Why the executor ended or still waits, in one word: Kubernetes' own (`OOMKilled`, `Evicted`, `ErrImagePull`) or one of
    /// ours (`PodFailed`, `PodDeleted`, `PodGone`).
    pub reason: Option<String>,
    /// Human-readable sentence.
    pub message: Option<String>,
    pub node: Option<String>,
    pub created_at: Option<DateTime<Utc>>,
    pub started_at: Option<DateTime<Utc>>,
    /// When its container ended, or otherwise when its end was recorded.
    pub finished_at: Option<DateTime<Utc>>,
    /// Unknown if the pod no longer exists.
    pub reservation: Option<Reservation>,
}

impl ExecutorRecord {
    pub fn key(&self) -> ExecutorKey {
        (self.submission.clone(), self.attempt, self.executor_id)
    }

    /// Returns the end of an executor whose pod no longer exists, and whose end was not observed.
    pub fn vanished((submission, attempt, executor_id): ExecutorKey, pod_name: String, pod_uid: String) -> Self {
        Self {
            submission,
            attempt,
            executor_id,
            driver_uid: None,
            pod_name,
            pod_uid,
            state: ExecutorState::Deleted,
            exit_code: None,
            reason: Some("PodGone".to_owned()),
            message: Some("the executor's pod disappeared before its end was observed".to_owned()),
            node: None,
            created_at: None,
            started_at: None,
            finished_at: None,
            reservation: None,
        }
    }
}

impl From<&ExecutorObservation> for ExecutorRecord {
    fn from(observed: &ExecutorObservation) -> Self {
        let state = state(observed);
        let (exit_code, started_at, finished_at) = match &observed.container {
            Container::Terminated { exit_code, started_at, finished_at, .. } => {
                (Some(*exit_code), *started_at, *finished_at)
            }
            Container::Running { started_at } => (None, *started_at, None),
            Container::Absent | Container::Waiting { .. } => (None, None, None),
        };
        let (reason, message) = why(state, observed);
        Self {
            submission: observed.submission.clone(),
            attempt: observed.attempt,
            executor_id: observed.executor_id,
            driver_uid: Some(observed.driver_uid.clone()),
            pod_name: observed.pod_name.clone(),
            pod_uid: observed.pod_uid.clone(),
            state,
            exit_code,
            reason: reason.map(|text| kept(&text).into_owned()),
            message: message.map(|text| kept(&text).into_owned()),
            node: observed.node.clone(),
            created_at: observed.created_at,
            started_at,
            finished_at,
            reservation: Some(observed.reservation),
        }
    }
}

/// Derives the state as Spark's `ExecutorPodsSnapshot` does, but from Spark's container alone: a failed sidecar makes an
/// executor fail only if the driver is configured so (`checkAllContainers`), and then the driver deletes the pod.
fn state(observed: &ExecutorObservation) -> ExecutorState {
    match (observed.phase, &observed.container) {
        // A pod that still runs during its grace period counts as running.
        (phase, _) if observed.deleting && phase != Phase::Running => ExecutorState::Deleted,
        (Phase::Succeeded, _) | (Phase::Running, Container::Terminated { exit_code: 0, .. }) => {
            ExecutorState::Succeeded
        }
        (Phase::Failed, _) | (Phase::Running, Container::Terminated { .. }) => ExecutorState::Failed,
        _ if observed.gone => ExecutorState::Deleted,
        (Phase::Pending, _) => ExecutorState::Pending,
        (Phase::Running, _) => ExecutorState::Running,
        (Phase::Unknown, _) => ExecutorState::Unknown,
    }
}

fn why(state: ExecutorState, observed: &ExecutorObservation) -> (Option<String>, Option<String>) {
    let (code, word, said) = match &observed.container {
        Container::Terminated { exit_code, reason, message, .. } => (Some(*exit_code), reason.clone(), message.clone()),
        Container::Waiting { reason, message } => (None, reason.clone(), message.clone()),
        Container::Absent | Container::Running { .. } => (None, None, None),
    };
    match state {
        ExecutorState::Succeeded => (word, None),
        ExecutorState::Running | ExecutorState::Unknown => (observed.reason.clone(), observed.message.clone()),
        ExecutorState::Pending => match word {
            Some(word) if !["ContainerCreating", "PodInitializing"].contains(&word.as_str()) => (Some(word), said),
            _ => (observed.reason.clone(), observed.message.clone()),
        },
        ExecutorState::Failed => {
            // The pod's own reason is more specific than the container's "Error".
            let reason = observed.reason.clone().or(word).unwrap_or_else(|| "PodFailed".to_owned());
            let said = said.or_else(|| observed.message.clone());
            let text = match code {
                Some(0) => {
                    format!("the executor's pod failed ({reason}), although Spark's container exited with code 0")
                }
                Some(code) => exited(code, &reason),
                None => format!("the executor's pod failed ({reason}) and left no exit code"),
            };
            (Some(reason), Some(with(text, said)))
        }
        ExecutorState::Deleted => {
            let reason = observed.reason.clone().or_else(|| word.filter(|_| code.is_some()));
            let text = match (code, &reason) {
                (Some(code), Some(reason)) => format!("the executor's pod was deleted; {}", exited(code, reason)),
                _ => "the executor's pod was deleted".to_owned(),
            };
            (reason.or_else(|| Some("PodDeleted".to_owned())), Some(with(text, observed.message.clone())))
        }
    }
}

fn exited(code: i32, reason: &str) -> String {
    match spark_words(code) {
        Some(words) => format!("the executor exited with code {code} ({reason}; {words})"),
        None => format!("the executor exited with code {code} ({reason})"),
    }
}

fn with(text: String, said: Option<String>) -> String {
    match said.as_deref().map(str::trim).filter(|said| !said.is_empty()) {
        Some(said) => format!("{text}: {said}"),
        None => text,
    }
}

#[cfg(test)]
mod tests;
