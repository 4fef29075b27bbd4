//! How a submission ended.

use super::State;

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

    /// The driver ended because someone asked Sparkgate for it.
    pub fn killed_on_request() -> Self {
        Self::new(State::Killed, Self::ON_REQUEST, "killed on request")
    }
}
