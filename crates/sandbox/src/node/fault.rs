//! Reasons why a container can't be started, with the messages of a kubelet.

use thiserror::Error;

/// A reason why a container can't be started. Both kinds leave the pod Pending and are retried, as a kubelet does.
#[derive(Debug, Error)]
pub(super) enum Fault {
    /// Something that the pod needs doesn't exist yet; Spark creates its pod before the `ConfigMap` that the pod mounts.
    #[error("{0}")]
    NotYet(String),
    /// The pod asks for something that this node doesn't support. The reason is that of the container's waiting state.
    #[error("{message}")]
    Refused { reason: &'static str, message: String },
}

impl Fault {
    pub(super) fn refused(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Refused { reason, message: message.into() }
    }

    /// Returns the reason of the waiting state.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NotYet(_) => "ContainerCreating",
            Self::Refused { reason, .. } => reason,
        }
    }

    /// Returns the reason of the event.
    pub(super) fn event(&self) -> &'static str {
        match self {
            Self::NotYet(_) => "FailedMount",
            Self::Refused { .. } => "Failed",
        }
    }
}
