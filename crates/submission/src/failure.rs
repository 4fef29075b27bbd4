//! Failure codes: why a submission failed, or still waits, as a closed list for programs, which can't interpret sentences.

mod advice;
mod cause;
mod output;
mod rules;

use std::{fmt, str::FromStr};

pub use advice::advice;
pub use cause::{cause, headline, headline_of_row};
pub use output::{OwnOutput, last_own_line, own_end};
pub use rules::{MEMORY_MAX, MessageIs, RULES, ReasonIs, Rule};

use super::state::State;

macro_rules! codes {
    ($($(#[$about:meta])* $name:ident $word:literal $class:ident)*) => {
        /// Why a submission failed, or isn't running yet.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum FailureCode { $($(#[$about])* $name),* }

        impl FailureCode {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            /// Returns the class of the cause.
            pub fn class(self) -> FailureClass {
                match self { $(Self::$name => FailureClass::$class),* }
            }
        }
    };
}

codes! {
    /// The image can't be pulled.
    ImagePull "IMAGE_PULL" Image
    /// No node can run the pod.
    Unschedulable "UNSCHEDULABLE" Capacity
    /// The quota of the namespace is exhausted.
    QuotaExceeded "QUOTA_EXCEEDED" Capacity
    /// An object that the pod refers to doesn't exist: a `ConfigMap`, a Secret, a volume.
    ConfigMissing "CONFIG_MISSING" Configuration
    /// The API server refused an object.
    Refused "REFUSED" Configuration
    /// The driver exceeded the memory of its container, or its JVM that of its heap.
    OutOfMemory "OUT_OF_MEMORY" Application
    /// The node ran out of resources, or an operator drained it.
    Evicted "EVICTED" Infrastructure
    /// The node was shut down, or didn't answer for too long.
    NodeLost "NODE_LOST" Infrastructure
    /// A pod with a higher priority replaced it.
    Preempted "PREEMPTED" Infrastructure
    /// Another client deleted the pod.
    PodDeleted "POD_DELETED" Infrastructure
    /// The end was not observed, and can't be known.
    Lost "LOST" Infrastructure
    /// The application ended with an exit code other than 0.
    ApplicationError "APPLICATION_ERROR" Application
    /// The container couldn't start its process.
    StartFailed "START_FAILED" Application
    KilledOnRequest "KILLED_ON_REQUEST" Cancelled
    /// The submission wasn't running in time.
    StartTimeout "START_TIMEOUT" Timeout
    /// The submission ran longer than its timeout.
    RunTimeout "RUN_TIMEOUT" Timeout
    /// No failure: the submission waits to be launched.
    Queued "QUEUED" Waiting
    /// No failure: a user holds the submission, which is launched after its release.
    Held "HELD" Waiting
    /// No failure: the pod is starting.
    Starting "STARTING" Waiting
    /// The API server doesn't answer.
    ClusterUnavailable "CLUSTER_UNAVAILABLE" Infrastructure
    /// The pod failed without a known reason.
    Unknown "UNKNOWN" Infrastructure
}

/// The class of a failure: what caused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureClass {
    Image,
    Capacity,
    Configuration,
    Application,
    Infrastructure,
    Cancelled,
    Timeout,
    Waiting,
}

impl FailureClass {
    pub const ALL: [Self; 8] = [
        Self::Image,
        Self::Capacity,
        Self::Configuration,
        Self::Application,
        Self::Infrastructure,
        Self::Cancelled,
        Self::Timeout,
        Self::Waiting,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Capacity => "capacity",
            Self::Configuration => "configuration",
            Self::Application => "application",
            Self::Infrastructure => "infrastructure",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
            Self::Waiting => "waiting",
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FailureCode {
    type Err = UnknownFailureCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.iter().copied().find(|code| code.as_str() == text).ok_or_else(|| UnknownFailureCode(text.to_owned()))
    }
}

/// A text is no failure code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no failure code")]
pub struct UnknownFailureCode(String);

/// The retry budget that another attempt counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryKind {
    /// The cluster ended the driver, independent of the application.
    Infrastructure,
    /// The driver ended by itself.
    Application,
    /// No node, or no queue of the cluster, had room for the driver.
    Capacity,
    /// A quota had no room for the driver.
    Quota,
    /// A queue took back the room that it had given. The submission goes back to the queue, however often, and no budget is used.
    Requeue,
}

/// The reason of a pod that the gateway ends because Kueue takes its quota back.
pub const EVICTED_BY_KUEUE: &str = "EvictedByKueue";

impl FailureCode {
    /// Returns why a submission failed or isn't running yet, from the values of its row; `None` if it runs or has finished.
    pub fn for_row(state: State, exit_code: Option<i32>, reason: Option<&str>, message: Option<&str>) -> Option<Self> {
        rules::code_for_row(state, exit_code, reason, message)
    }

    /// Returns why an attempt failed, from the values of its row; `None` if it has not ended or if it succeeded.
    pub fn for_end(state: State, exit_code: Option<i32>, reason: Option<&str>, message: Option<&str>) -> Option<Self> {
        state.is_terminal().then(|| Self::for_row(state, exit_code, reason, message)).flatten()
    }

    /// Returns which kind of retry may follow the failure, if any. A start timeout counts as what the driver waited for, which the
    /// statement that kills it knows. Other intended ends (a kill, a deleted pod, a timeout) and
    /// failures that would repeat in the same way are never retried. LOST is: the application may have completed its work, so
    /// clients that request such retries must tolerate a second run.
    pub fn retry_kind(self) -> Option<RetryKind> {
        match self {
            Self::Evicted | Self::NodeLost | Self::Preempted | Self::Lost => Some(RetryKind::Infrastructure),
            Self::OutOfMemory | Self::ApplicationError | Self::StartFailed => Some(RetryKind::Application),
            Self::Unschedulable => Some(RetryKind::Capacity),
            Self::QuotaExceeded => Some(RetryKind::Quota),
            Self::ImagePull
            | Self::ConfigMissing
            | Self::Refused
            | Self::PodDeleted
            | Self::KilledOnRequest
            | Self::StartTimeout
            | Self::RunTimeout
            | Self::Queued
            | Self::Held
            | Self::Starting
            | Self::ClusterUnavailable
            | Self::Unknown => None,
        }
    }
}

/// Returns the signal that ended a process, from its exit code in the convention of shells and container runtimes: 128 plus the
/// number of the signal.
pub fn signal(exit_code: i32) -> Option<&'static str> {
    Some(match exit_code.checked_sub(128)? {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
