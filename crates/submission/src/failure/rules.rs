//! The table of failure codes: which values of a row stand for which code. It is data, so that a statement of the database can have
//! the same rules.

use super::{
    EVICTED_BY_KUEUE,
    FailureCode::{self, *},
};
use crate::{kill_cause::KillCause, queues::QueueEvent, state::State};

/// The reason of an attempt that needs more memory than its submission may have.
pub const MEMORY_MAX: &str = "MemoryMax";
const HELD: &str = QueueEvent::Held.as_str();

/// What a JVM throws when its heap, or another of its pools, is full.
const OUT_OF_MEMORY: &str = "OutOfMemoryError";
/// The exit code of a JVM of Spark that ran out of memory (`SparkExitCode.OOM`).
const SPARK_OUT_OF_MEMORY: i32 = 52;

/// A row of the table. The first one whose conditions all hold decides.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    pub code: FailureCode,
    /// Any of these.
    pub states: &'static [State],
    pub reason: ReasonIs,
    /// Known, and in this range, whose ends belong to it.
    pub exit_code: Option<(i32, i32)>,
    pub message: MessageIs,
}

/// A condition of the reason, which Kubernetes gives, or the gateway.
#[derive(Debug, Clone, Copy)]
pub enum ReasonIs {
    Anything,
    /// There is none.
    Missing,
    OneOf(&'static [&'static str]),
    BeginsWith(&'static str),
}

/// A condition of the message.
#[derive(Debug, Clone, Copy)]
pub enum MessageIs {
    Anything,
    /// There is one, and it isn't empty.
    Present,
    Contains(&'static str),
}

impl Rule {
    const fn of(states: &'static [State], code: FailureCode) -> Self {
        Self { code, states, reason: ReasonIs::Anything, exit_code: None, message: MessageIs::Anything }
    }

    const fn reasons(self, reasons: &'static [&'static str]) -> Self {
        Self { reason: ReasonIs::OneOf(reasons), ..self }
    }

    const fn reason_begins(self, prefix: &'static str) -> Self {
        Self { reason: ReasonIs::BeginsWith(prefix), ..self }
    }

    const fn no_reason(self) -> Self {
        Self { reason: ReasonIs::Missing, ..self }
    }

    const fn exit_codes(self, first: i32, last: i32) -> Self {
        Self { exit_code: Some((first, last)), ..self }
    }

    const fn any_exit_code(self) -> Self {
        self.exit_codes(i32::MIN, i32::MAX)
    }

    const fn message(self, message: MessageIs) -> Self {
        Self { message, ..self }
    }

    fn holds(&self, exit_code: Option<i32>, reason: Option<&str>, message: Option<&str>) -> bool {
        let of_reason = match self.reason {
            ReasonIs::Anything => true,
            ReasonIs::Missing => reason.is_none(),
            ReasonIs::OneOf(reasons) => reason.is_some_and(|reason| reasons.contains(&reason)),
            ReasonIs::BeginsWith(prefix) => reason.is_some_and(|reason| reason.starts_with(prefix)),
        };
        let of_exit_code = self
            .exit_code
            .is_none_or(|(first, last)| exit_code.is_some_and(|exit_code| (first..=last).contains(&exit_code)));
        let of_message = match self.message {
            MessageIs::Anything => true,
            MessageIs::Present => message.is_some_and(|message| !message.is_empty()),
            MessageIs::Contains(part) => message.is_some_and(|message| message.contains(part)),
        };
        of_reason && of_exit_code && of_message
    }
}

/// Returns the code of a row; `None` if it runs or has finished.
pub(super) fn code_for_row(
    state: State,
    exit_code: Option<i32>,
    reason: Option<&str>,
    message: Option<&str>,
) -> Option<FailureCode> {
    let mut rules = RULES.iter().filter(|rule| rule.states.contains(&state));
    rules.find(|rule| rule.holds(exit_code, reason, message)).map(|rule| rule.code)
}

/// The end of a submission that is being killed is known already.
const BY_KILL: &[State] = &[State::Killed, State::Killing];
const LOST: &[State] = &[State::Lost];
const REFUSED: &[State] = &[State::Error];
const FAILED: &[State] = &[State::Failed];
const WAITING: &[State] = &[State::Queued, State::Launching, State::Pending];
const TO_LAUNCH: &[State] = &[State::Queued, State::Launching];
const KILLED_OR_WAITING: &[State] = &[State::Killed, State::Killing, State::Queued, State::Launching, State::Pending];

/// All rules.
pub const RULES: &[Rule] = &[
    // The causes of our own kills. The row of a live submission keeps them until its state changes.
    Rule::of(KILLED_OR_WAITING, KilledOnRequest).reasons(&[KillCause::REQUEST]),
    Rule::of(KILLED_OR_WAITING, StartTimeout).reasons(&[KillCause::START_TIMEOUT]),
    Rule::of(KILLED_OR_WAITING, RunTimeout).reasons(&[KillCause::RUN_TIMEOUT]),
    Rule::of(BY_KILL, PodDeleted),
    Rule::of(LOST, Lost),
    // The API server's `reason`, or ours if the API server was not asked. A quota is refused as `Forbidden`, so the message decides.
    Rule::of(REFUSED, QuotaExceeded).reasons(&["Forbidden"]).message(MessageIs::Contains("exceeded quota")),
    // Kueue's queue will never have as much.
    Rule::of(REFUSED, QuotaExceeded).reasons(&["ExceedsMaxQuota"]),
    Rule::of(REFUSED, OutOfMemory).reasons(&[MEMORY_MAX]),
    Rule::of(REFUSED, Refused),
    // The reason of a failed pod, as set by kubelets (`status.reason`), by control planes (the condition `DisruptionTarget`) and by
    // container runtimes.
    Rule::of(FAILED, OutOfMemory).reasons(&["OOMKilled"]),
    Rule::of(FAILED, Evicted).reasons(&["Evicted", "EvictionByEvictionAPI", "TerminationByKubelet"]),
    // The kubelet rejected a pod that the scheduler had assigned: the node has fewer resources than the scheduler assumed.
    Rule::of(FAILED, Evicted).reasons(&["UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "Taint"]),
    Rule::of(FAILED, Evicted).reason_begins("OutOf"),
    Rule::of(FAILED, NodeLost).reasons(&["NodeLost", "NodeShutdown", "Shutdown", "Terminated"]),
    Rule::of(FAILED, NodeLost).reasons(&["DeletionByTaintManager", "DeletionByPodGC"]),
    // The node was restarted, and its kubelet or its container runtime (containerd's "Unknown", with exit code 255) no longer knows the
    // container.
    Rule::of(FAILED, NodeLost).reasons(&["ContainerStatusUnknown", "Unknown"]),
    // The kubelet sets the last one, to make room for a pod that is critical for the node.
    Rule::of(FAILED, Preempted).reasons(&["PreemptionByScheduler", "PreemptionByKubeScheduler", "Preempting"]),
    // Kueue took the quota of the pod's workload back, or doesn't know the workload of a pod that it holds back. Kueue 0.14 appends its
    // own reason: `WorkloadEvictedDueToPreempted`.
    Rule::of(FAILED, Preempted).reasons(&[EVICTED_BY_KUEUE]),
    Rule::of(FAILED, Preempted).reason_begins("WorkloadEvicted"),
    Rule::of(FAILED, Evicted).reasons(&["NotAdmitted", "NoMatchingWorkload"]),
    // YuniKorn doesn't take the application: its queue doesn't exist, or isn't the user's.
    Rule::of(FAILED, Refused).reasons(&["ApplicationRejected"]),
    // YuniKorn found no room for the whole gang in time.
    Rule::of(FAILED, Unschedulable).reasons(&["ResourceReservationTimeout"]),
    // `activeDeadlineSeconds`, which a pod template can set.
    Rule::of(FAILED, RunTimeout).reasons(&["DeadlineExceeded"]),
    Rule::of(FAILED, StartFailed).reasons(&["ContainerCannotRun", "StartError"]),
    Rule::of(FAILED, StartFailed).reasons(&["CreateContainerError", "RunContainerError"]),
    // Shells and container runtimes use these exit codes for a process that couldn't be started.
    Rule::of(FAILED, StartFailed).exit_codes(126, 128),
    Rule::of(FAILED, OutOfMemory).exit_codes(SPARK_OUT_OF_MEMORY, SPARK_OUT_OF_MEMORY),
    Rule::of(FAILED, OutOfMemory).any_exit_code().message(MessageIs::Contains(OUT_OF_MEMORY)),
    Rule::of(FAILED, ApplicationError).any_exit_code(),
    Rule::of(FAILED, Unknown),
    // The reason why a container waits, or why its pod has no node.
    Rule::of(WAITING, ImagePull).reasons(&[
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "ErrImageNeverPull",
    ]),
    Rule::of(WAITING, ImagePull).reasons(&["ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"]),
    Rule::of(WAITING, Unschedulable).reasons(&["Unschedulable", "SchedulerError"]),
    // A controller holds the pod back by a scheduling gate: a queue, such as Kueue's.
    Rule::of(WAITING, Queued).reasons(&["SchedulingGated"]),
    // Kueue has not admitted the submission yet.
    Rule::of(WAITING, Queued).reasons(&["WaitingForQuota", "WaitingForPreemptedWorkloads", "WaitingForPodsReady"]),
    Rule::of(WAITING, Queued).reasons(&["AdmissionChecks", "Suspended", "Deactivated", "Unseen", "Pending"]),
    Rule::of(WAITING, Unschedulable).reasons(&["NoMatchingFlavor"]),
    // Its queue is missing or lacks a resource, or Kueue itself is missing.
    Rule::of(WAITING, ConfigMissing).reasons(&["Misconfigured", "KueueMissing"]),
    Rule::of(WAITING, ClusterUnavailable).reasons(&["KueueUnavailable"]),
    // A queue of the gateway has no room.
    Rule::of(WAITING, Queued).reasons(&["QueuePaused", "QueueCap", "Capacity", "CapacityReserved", "NeverFits"]),
    Rule::of(WAITING, Held).reasons(&[HELD]),
    // The API server denies the launch, or a webhook does so for now.
    Rule::of(WAITING, Refused).reasons(&["Forbidden", "NotNow"]),
    // The quota of the namespace has no room for the driver.
    Rule::of(WAITING, QuotaExceeded).reasons(&["QuotaExceeded"]),
    Rule::of(WAITING, ConfigMissing).reasons(&["NamespaceNotFound"]),
    Rule::of(WAITING, ConfigMissing).reasons(&["CreateContainerConfigError", "FailedMount", "FailedAttachVolume"]),
    // The gateway lacks the key of the encrypted objects.
    Rule::of(WAITING, ConfigMissing).reasons(&["EncryptionKeyMissing"]),
    Rule::of(WAITING, StartFailed).reasons(&["CreateContainerError", "RunContainerError", "ContainerCannotRun"]),
    Rule::of(WAITING, StartFailed).reasons(&["StartError", "CrashLoopBackOff", "PostStartHookError"]),
    // A postponed launch has a message; without a reason of Kubernetes, the cluster didn't answer.
    Rule::of(TO_LAUNCH, ClusterUnavailable).no_reason().message(MessageIs::Present),
    Rule::of(TO_LAUNCH, Queued).no_reason(),
    Rule::of(WAITING, Starting),
];
