//! Why a container can't be started, in the words a kubelet reports.

use thiserror::Error;

/// A reason not to start a container. Both kinds leave the pod Pending and are tried again, as a kubelet does.
#[derive(Debug, Error)]
pub(super) enum Fault {
    /// Something the pod needs isn't there yet; Spark creates its pod before the `ConfigMap` that the pod mounts.
    #[error("{0}")]
    NotYet(String),
    /// The pod asks for what this node can't give. The reason is the one of the container's waiting state.
    #[error("{message}")]
    Refused { reason: &'static str, message: String },
}

impl Fault {
    pub(super) fn refused(reason: &'static str, message: impl Into<String>) -> Self {
        Self::Refused { reason, message: message.into() }
    }

    /// The waiting state's reason.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NotYet(_) => "ContainerCreating",
            Self::Refused { reason, .. } => reason,
        }
    }

    /// The reason of the event.
    pub(super) fn event(&self) -> &'static str {
        match self {
            Self::NotYet(_) => "FailedMount",
            Self::Refused { .. } => "Failed",
        }
    }
}
