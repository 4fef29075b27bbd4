//! How a submission ended.

use super::{FailureCode, KillCause, RetryKind, State};

/// A terminal state and what is known of the driver *container* at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub state: State,
    pub exit_code: Option<i32>,
    /// One word: Kubernetes' own (`Error`, `OOMKilled`, `Evicted`, `Forbidden`) or one of ours (`PodGone`).
    pub reason: Option<String>,
    /// A sentence for people.
    pub message: String,
}

impl Outcome {
    /// The reason of a submission that was killed through Sparkgate.
    pub const ON_REQUEST: &'static str = "Killed";

    pub fn new(state: State, reason: &str, message: impl Into<String>) -> Self {
        Self { state, exit_code: None, reason: Some(reason.to_owned()), message: message.into() }
    }

    /// The pod isn't there and nobody saw its end.
    pub fn pod_gone() -> Self {
        Self::new(
            State::Lost,
            "PodGone",
            "the driver pod vanished before its end was seen: how the application ended can't be known",
        )
    }

    /// The driver ended because Sparkgate killed it.
    pub fn killed(cause: &KillCause) -> Self {
        Self::new(State::Killed, cause.reason(), cause.message())
    }

    /// Which retries may follow this end, if any do.
    pub fn retry_kind(&self) -> Option<RetryKind> {
        let reason = self.reason.as_deref();
        FailureCode::of_end(self.state, self.exit_code, reason, Some(&self.message))?.retry_kind()
    }
}
