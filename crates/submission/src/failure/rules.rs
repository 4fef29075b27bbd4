//! Maps reasons of Kubernetes, and our own, to failure codes.

use super::{
    EVICTED_BY_KUEUE,
    FailureCode::{self, *},
};
use crate::{kill_cause::KillCause, queues::QueueEvent};

/// The reason of an attempt that needs more memory than its submission may have.
pub const MEMORY_MAX: &str = "MemoryMax";
const HELD: &str = QueueEvent::Held.as_str();

/// Maps the causes of our own kills.
pub(super) fn code_for_kill(reason: &str) -> Option<FailureCode> {
    Some(match reason {
        KillCause::REQUEST => KilledOnRequest,
        KillCause::START_TIMEOUT => StartTimeout,
        KillCause::RUN_TIMEOUT => RunTimeout,
        _ => return None,
    })
}

/// Maps the API server's `reason`, or ours if the API server was not asked. A quota is refused as `Forbidden`, so the message
/// decides.
pub(super) fn code_for_refusal(reason: &str, message: &str) -> FailureCode {
    match reason {
        "Forbidden" if message.contains("exceeded quota") => QuotaExceeded,
        // Kueue's queue will never have as much.
        "ExceedsMaxQuota" => QuotaExceeded,
        MEMORY_MAX => OutOfMemory,
        _ => Refused,
    }
}

/// Maps the reason of a failed pod, as set by kubelets (`status.reason`), by control planes (the condition `DisruptionTarget`)
/// and by container runtimes.
pub(super) fn code_for_reason(reason: &str) -> Option<FailureCode> {
    Some(match reason {
        "OOMKilled" => OutOfMemory,
        "Evicted" | "EvictionByEvictionAPI" | "TerminationByKubelet" => Evicted,
        // The kubelet rejected a pod that the scheduler had assigned: the node has fewer resources than the scheduler assumed.
        "UnexpectedAdmissionError" | "NodeAffinity" | "NodePorts" | "Taint" => Evicted,
        reason if reason.starts_with("OutOf") => Evicted,
        "NodeLost" | "NodeShutdown" | "Shutdown" | "Terminated" | "DeletionByTaintManager" | "DeletionByPodGC" => {
            NodeLost
        }
        // The node was restarted, and its kubelet or its container runtime (containerd's "Unknown", with exit code 255) no longer
        // knows the container.
        "ContainerStatusUnknown" | "Unknown" => NodeLost,
        // The kubelet sets the last one, to make room for a pod that is critical for the node.
        "PreemptionByScheduler" | "PreemptionByKubeScheduler" | "Preempting" => Preempted,
        // Kueue took the quota of the pod's workload back, or doesn't know the workload of a pod that it holds back.
        EVICTED_BY_KUEUE => Preempted,
        // Kueue 0.14 appends its own reason: `WorkloadEvictedDueToPreempted`.
        reason if reason.starts_with("WorkloadEvicted") => Preempted,
        "NotAdmitted" | "NoMatchingWorkload" => Evicted,
        // YuniKorn doesn't take the application: its queue doesn't exist, or isn't the user's.
        "ApplicationRejected" => Refused,
        // YuniKorn found no room for the whole gang in time.
        "ResourceReservationTimeout" => Unschedulable,
        // `activeDeadlineSeconds`, which a pod template can set.
        "DeadlineExceeded" => RunTimeout,
        "ContainerCannotRun" | "StartError" | "CreateContainerError" | "RunContainerError" => StartFailed,
        _ => return None,
    })
}

/// What a JVM throws when its heap, or another of its pools, is full.
const OUT_OF_MEMORY: &str = "OutOfMemoryError";
/// The exit code of a JVM of Spark that ran out of memory (`SparkExitCode.OOM`).
const SPARK_OUT_OF_MEMORY: i32 = 52;

/// Maps an exit code, and the exception in the message. Shells and container runtimes use 126 to 128 for a process that couldn't be
/// started.
pub(super) fn code_for_exit(exit_code: Option<i32>, message: &str) -> FailureCode {
    match exit_code {
        Some(126..=128) => StartFailed,
        Some(SPARK_OUT_OF_MEMORY) => OutOfMemory,
        Some(_) if message.contains(OUT_OF_MEMORY) => OutOfMemory,
        Some(_) => ApplicationError,
        None => Unknown,
    }
}

/// Maps the reason why a container waits, or why its pod has no node.
pub(super) fn code_for_wait(reason: &str) -> Option<FailureCode> {
    if let Some(code) = code_for_kill(reason) {
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
        "Unschedulable" | "SchedulerError" => Unschedulable,
        // A controller holds the pod back by a scheduling gate: a queue, such as Kueue's.
        "SchedulingGated" => Queued,
        // Kueue has not admitted the submission yet.
        "WaitingForQuota"
        | "WaitingForPreemptedWorkloads"
        | "WaitingForPodsReady"
        | "AdmissionChecks"
        | "Suspended"
        | "Deactivated"
        | "Unseen"
        | "Pending" => Queued,
        "NoMatchingFlavor" => Unschedulable,
        // Its queue is missing or lacks a resource, or Kueue itself is missing.
        "Misconfigured" | "KueueMissing" => ConfigMissing,
        "KueueUnavailable" => ClusterUnavailable,
        // A queue of the gateway has no room.
        "QueuePaused" | "QueueCap" | "Capacity" | "CapacityReserved" | "NeverFits" => Queued,
        HELD => Held,
        // The API server denies the launch, or a webhook does so for now.
        "Forbidden" | "NotNow" => Refused,
        // The quota of the namespace has no room for the driver.
        "QuotaExceeded" => QuotaExceeded,
        "NamespaceNotFound" => ConfigMissing,
        "CreateContainerConfigError" | "FailedMount" | "FailedAttachVolume" => ConfigMissing,
        // The gateway lacks the key of the encrypted objects.
        "EncryptionKeyMissing" => ConfigMissing,
        "CreateContainerError"
        | "RunContainerError"
        | "ContainerCannotRun"
        | "StartError"
        | "CrashLoopBackOff"
        | "PostStartHookError" => StartFailed,
        _ => return None,
    })
}
