//! The outcome of a submission.

use super::{
    failure::{EVICTED_BY_KUEUE, FailureCode, RetryKind},
    kill_cause::KillCause,
    state::State,
};

/// A terminal state, and what is known about the end of the driver *container*.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub state: State,
    pub exit_code: Option<i32>,
    /// One word: Kubernetes' own reason (`Error`, `OOMKilled`, `Evicted`, `Forbidden`) or one of ours (`PodGone`).
    pub reason: Option<String>,
    /// Human-readable sentence.
    pub message: String,
}

impl Outcome {
    /// The reason of a submission that was killed through Sparkgate.
    pub const ON_REQUEST: &'static str = KillCause::REQUEST;

    pub fn new(state: State, reason: &str, message: impl Into<String>) -> Self {
        Self { state, exit_code: None, reason: Some(reason.to_owned()), message: message.into() }
    }

    /// Returns the outcome of a submission whose pod no longer exists, and whose end was not observed.
    pub fn pod_gone() -> Self {
        Self::new(
            State::Lost,
            "PodGone",
            "the driver pod disappeared before its end was observed: the outcome of the application can't be known",
        )
    }

    /// Returns the outcome of a submission that Sparkgate killed.
    pub fn killed(cause: &KillCause) -> Self {
        Self::new(State::Killed, cause.reason(), cause.message())
    }

    /// Returns the outcome with the cause that the driver's log gives, unless the message has it already.
    #[must_use]
    pub fn because_of(self, cause: &str) -> Self {
        let message = match self.message.contains(cause) {
            true => self.message,
            false => format!("{}: {cause}", self.message),
        };
        Self { message, ..self }
    }

    /// Returns which kind of retry may follow this end, if any.
    pub fn retry_kind(&self) -> Option<RetryKind> {
        let reason = self.reason.as_deref();
        if self.state == State::Failed && reason == Some(EVICTED_BY_KUEUE) {
            return Some(RetryKind::Requeue);
        }
        let kind = FailureCode::for_end(self.state, self.exit_code, reason, Some(&self.message))?.retry_kind()?;
        // What was refused before it was created would be refused again, unless a quota has grown since.
        (self.state != State::Error || kind == RetryKind::Quota).then_some(kind)
    }
}
