//! The APIs of other servers that the gateway serves beside its own.

use std::{fmt, str::FromStr};

/// The API that a submission came with, if it is neither the gateway's own nor Spark's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Livy's batches.
    Livy,
    /// The submitter of Kubeflow's Spark operator, used by a client whose pods are the gateway's as those of every other.
    Kubeflow,
    /// The same, used by an operator that owns the driver pod: it watches the pod and deletes it.
    KubeflowOperator,
}

/// A value that is no wire: another program wrote to the database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an API that the gateway serves")]
pub struct UnknownWire(pub String);

impl Wire {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Livy => "livy",
            Self::Kubeflow => "kubeflow-client",
            // Rows of earlier releases have this value, and those releases leave such pods alone.
            Self::KubeflowOperator => "kubeflow",
        }
    }

    /// Returns whether the client, and not the gateway, decides about the driver pod once it exists.
    pub fn owns_pods(self) -> bool {
        self == Self::KubeflowOperator
    }

    /// Returns whether a request of the client is answered when the driver pod exists. The client takes no other answer for a success, and
    /// asks for another pod after it has waited in vain.
    pub fn answers_with_pod(self) -> bool {
        matches!(self, Self::Kubeflow | Self::KubeflowOperator)
    }

    /// Returns whether the client restarts an application by itself.
    pub fn retries_by_itself(self) -> bool {
        matches!(self, Self::Kubeflow | Self::KubeflowOperator)
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Wire {
    type Err = UnknownWire;

    fn from_str(text: &str) -> Result<Self, UnknownWire> {
        let all = [Self::Livy, Self::Kubeflow, Self::KubeflowOperator];
        all.into_iter().find(|wire| wire.as_str() == text).ok_or_else(|| UnknownWire(text.to_owned()))
    }
}
