//! Why a submission failed, or still waits, as one word of a closed list: for programs, which sentences don't help.

mod rules;

use std::fmt;

use super::State;

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

            /// Whose trouble it is.
            pub fn class(self) -> FailureClass {
                match self { $(Self::$name => FailureClass::$class),* }
            }
        }
    };
}

codes! {
    /// The image can't be pulled.
    ImagePull "IMAGE_PULL" Image
    /// No node takes the pod.
    Unschedulable "UNSCHEDULABLE" Capacity
    /// The namespace may not have more.
    QuotaExceeded "QUOTA_EXCEEDED" Capacity
    /// Something that the pod names isn't there: a `ConfigMap`, a Secret, a volume.
    ConfigMissing "CONFIG_MISSING" Configuration
    /// The API server said no.
    Refused "REFUSED" Configuration
    /// The kernel killed the driver: it used more memory than its container has.
    OutOfMemory "OUT_OF_MEMORY" Application
    /// Its node had no room for it any more, or somebody drained the node.
    Evicted "EVICTED" Infrastructure
    /// Its node was shut down, or didn't answer for too long.
    NodeLost "NODE_LOST" Infrastructure
    /// A pod of a higher priority took its place.
    Preempted "PREEMPTED" Infrastructure
    /// Somebody deleted the pod.
    PodDeleted "POD_DELETED" Infrastructure
    /// Nobody saw the end: it can't be known.
    Lost "LOST" Infrastructure
    /// The application ended with an exit code other than 0.
    ApplicationError "APPLICATION_ERROR" Application
    /// The container couldn't start what it should run.
    StartFailed "START_FAILED" Application
    KilledOnRequest "KILLED_ON_REQUEST" Cancelled
    /// It wasn't running in time.
    StartTimeout "START_TIMEOUT" Timeout
    /// It ran too long.
    RunTimeout "RUN_TIMEOUT" Timeout
    /// Nothing is wrong: its launch is yet to come.
    Queued "QUEUED" Waiting
    /// Nothing is wrong: its pod is starting.
    Starting "STARTING" Waiting
    /// The API server doesn't answer.
    ClusterUnavailable "CLUSTER_UNAVAILABLE" Infrastructure
    /// The pod failed, and nobody said why.
    Unknown "UNKNOWN" Infrastructure
}

/// Whose trouble a failure is.
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

/// Which budget another attempt is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryKind {
    /// The cluster ended the driver, whatever it did.
    Infrastructure,
    /// The driver ended by itself.
    Application,
}

impl FailureCode {
    /// Why it failed, by what the row of an ended attempt has; `None` if it didn't.
    pub fn of_end(state: State, exit_code: Option<i32>, reason: Option<&str>, message: Option<&str>) -> Option<Self> {
        let reason = reason.unwrap_or_default();
        Some(match state {
            State::Queued | State::Launching | State::Pending | State::Running | State::Killing => return None,
            State::Finished => return None,
            State::Killed => rules::of_kill(reason).unwrap_or(Self::PodDeleted),
            State::Lost => Self::Lost,
            State::Error => rules::of_refusal(reason, message.unwrap_or_default()),
            State::Failed => rules::of_reason(reason).unwrap_or_else(|| rules::of_exit_code(exit_code)),
        })
    }

    /// Why it isn't running yet, by what the row of a live submission has.
    pub fn of_waiting(state: State, reason: Option<&str>, message: Option<&str>) -> Self {
        let said = message.is_some_and(|text| !text.is_empty());
        match (state, reason) {
            (_, Some(reason)) => rules::of_wait(reason).unwrap_or(Self::Starting),
            // A launch that was put off says why, and the reason is no word of Kubernetes.
            (State::Queued | State::Launching | State::Killing, None) if said => Self::ClusterUnavailable,
            (State::Queued | State::Launching, None) => Self::Queued,
            _ => Self::Starting,
        }
    }

    /// Which retries may follow it, if any do. What was asked for by somebody (a kill, a deleted pod, a time limit) and what
    /// would go wrong again in the same way is never tried again. LOST is: the application may have done all its work, so
    /// whoever asks for such retries has to be able to bear that.
    pub fn retry_kind(self) -> Option<RetryKind> {
        match self {
            Self::Evicted | Self::NodeLost | Self::Preempted | Self::Lost => Some(RetryKind::Infrastructure),
            Self::OutOfMemory | Self::ApplicationError | Self::StartFailed => Some(RetryKind::Application),
            Self::ImagePull
            | Self::Unschedulable
            | Self::QuotaExceeded
            | Self::ConfigMissing
            | Self::Refused
            | Self::PodDeleted
            | Self::KilledOnRequest
            | Self::StartTimeout
            | Self::RunTimeout
            | Self::Queued
            | Self::Starting
            | Self::ClusterUnavailable
            | Self::Unknown => None,
        }
    }
}

/// The signal that ended a process, by its exit code as shells and container runtimes tell it: 128 and the signal's number.
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
