//! Kubernetes' words, and ours, to codes.

use super::FailureCode::{self, *};
use crate::submission::KillCause;

/// The causes of our own kills.
pub(super) fn of_kill(reason: &str) -> Option<FailureCode> {
    Some(match reason {
        KillCause::REQUEST => KilledOnRequest,
        KillCause::START_TIMEOUT => StartTimeout,
        KillCause::RUN_TIMEOUT => RunTimeout,
        _ => return None,
    })
}

/// The API server's `reason`, or ours for what it was never asked. A quota is refused as `Forbidden`; its words tell.
pub(super) fn of_refusal(reason: &str, message: &str) -> FailureCode {
    if reason == "Forbidden" && message.contains("exceeded quota") { QuotaExceeded } else { Refused }
}

/// Why a pod failed, in the words of kubelets (`status.reason`), of control planes (the condition `DisruptionTarget`) and
/// of container runtimes.
pub(super) fn of_reason(reason: &str) -> Option<FailureCode> {
    Some(match reason {
        "OOMKilled" => OutOfMemory,
        "Evicted" | "EvictionByEvictionAPI" | "TerminationByKubelet" => Evicted,
        // The kubelet turned away what the scheduler had sent: it has less room than was thought.
        "UnexpectedAdmissionError" | "NodeAffinity" | "NodePorts" | "Taint" => Evicted,
        reason if reason.starts_with("OutOf") => Evicted,
        "NodeLost" | "NodeShutdown" | "Shutdown" | "Terminated" | "DeletionByTaintManager" | "DeletionByPodGC" => {
            NodeLost
        }
        // The node was started anew and doesn't know the container any more.
        "ContainerStatusUnknown" => NodeLost,
        // The last is of the kubelet, for a pod that the node can't do without.
        "PreemptionByScheduler" | "PreemptionByKubeScheduler" | "Preempting" => Preempted,
        // `activeDeadlineSeconds`, which a pod template can set.
        "DeadlineExceeded" => RunTimeout,
        "ContainerCannotRun" | "StartError" | "CreateContainerError" | "RunContainerError" => StartFailed,
        _ => return None,
    })
}

/// 126 to 128 are a shell's and a runtime's for what couldn't be started.
pub(super) fn of_exit_code(exit_code: Option<i32>) -> FailureCode {
    match exit_code {
        Some(126..=128) => StartFailed,
        Some(_) => ApplicationError,
        None => Unknown,
    }
}

/// Why a container waits, or its pod has no node.
pub(super) fn of_wait(reason: &str) -> Option<FailureCode> {
    if let Some(code) = of_kill(reason) {
        return Some(code);
    }
    Some(match reason {
        "ErrImagePull"
        | "ImagePullBackOff"
        | "InvalidImageName"
        | "ErrImageNeverPull"
        | "ImageInspectError"
        | "RegistryUnavailable"
        | "SignatureValidationFailed" => ImagePull,
        "Unschedulable" | "SchedulingGated" | "SchedulerError" => Unschedulable,
        // The API server denies the launch.
        "Forbidden" => Refused,
        "CreateContainerConfigError" | "FailedMount" | "FailedAttachVolume" => ConfigMissing,
        "CreateContainerError"
        | "RunContainerError"
        | "ContainerCannotRun"
        | "StartError"
        | "CrashLoopBackOff"
        | "PostStartHookError" => StartFailed,
        _ => return None,
    })
}
