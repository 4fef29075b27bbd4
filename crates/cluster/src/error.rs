//! The ways in which a call to the API server can fail.

use std::time::Duration;

use kube::core::Status;

use super::quota::EXCEEDED;

/// A call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// 404: the object of this name doesn't exist, which is the one that was asked for, or the namespace in which it should be
    /// created.
    #[error("{action}: {message}")]
    NotFound { action: String, name: String, message: String },
    /// 409 `AlreadyExists`: the name is taken.
    #[error("{action}: {message}")]
    AlreadyExists { action: String, message: String },
    /// Any other 409: a precondition doesn't hold, or two clients wrote at once.
    #[error("{action}: {message}")]
    Conflict { action: String, message: String },
    /// 403 for a temporary reason: the account lacks a right that an operator can grant, or the API server isn't ready to
    /// decide on the request. An API server that is starting denies everything for a moment, because its RBAC caches are
    /// empty.
    #[error("{action}: the API server denied it: {message}")]
    Denied { action: String, message: String },
    /// 403 of a `ResourceQuota` that has no room at the moment, and would have room for the object alone.
    #[error("{action}: {message}")]
    QuotaExceeded { action: String, message: String },
    /// 429 or 503 of an admission webhook: it denies the request for now.
    #[error("{action}: {message}")]
    NotNow { action: String, message: String, retry_after: Option<Duration> },
    /// The API server rejected the request (400, 403, 422, …): repeating the call won't help.
    #[error("{action}: the API server refused it: {message}")]
    Refused { action: String, code: u16, reason: String, message: String },
    /// No answer of Kubernetes, or a status that may pass (401, 408, 429, 5xx). The call may or may not have taken effect. A page
    /// of a proxy in front of the API server is no answer, whatever its status is.
    #[error("{action}: the Kubernetes API is not available")]
    Unavailable { action: String, source: Box<dyn std::error::Error + Send + Sync> },
}

impl Error {
    /// Returns whether the server doesn't accept the client's credentials.
    pub fn is_unauthorized(&self) -> bool {
        let Self::Unavailable { source, .. } = self else { return false };
        matches!(source.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == 401)
    }

    /// Returns whether the cluster is unavailable at the moment, at least for this namespace: no connection, no answer, an
    /// answer that requests a delay, or a webhook that can't be called. An error of the server about one object doesn't count.
    pub fn is_outage(&self) -> bool {
        match self.status() {
            Some(status) => matches!(status.code, 401 | 429 | 503) || status.message.contains(WEBHOOK_FAILED),
            None => matches!(self, Self::Unavailable { .. }),
        }
    }

    /// Returns whether the error is an answer of the server, or of a webhook through the server.
    pub fn is_answer(&self) -> bool {
        !matches!(self, Self::Unavailable { .. }) || self.status().is_some()
    }

    /// Returns whether the server, or a webhook, answered that it doesn't carry the request out. It may do so before it looks whether the
    /// object exists.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Denied { .. } | Self::QuotaExceeded { .. } | Self::NotNow { .. } | Self::Refused { .. })
    }

    /// Returns whether an object will never fit into a quota of its namespace, which may have no room for any other either.
    pub fn is_beyond_quota(&self) -> bool {
        matches!(self, Self::Refused { code: 403, message, .. } if message.contains(EXCEEDED))
    }

    /// Returns for how long the server asks its clients to wait before the next try.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NotNow { retry_after, .. } => *retry_after,
            _ => self.status().and_then(retry_after),
        }
    }

    /// Returns the kind of the error for a span.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "NotFound",
            Self::AlreadyExists { .. } => "AlreadyExists",
            Self::Conflict { .. } => "Conflict",
            Self::Denied { .. } => "Forbidden",
            Self::QuotaExceeded { .. } => "QuotaExceeded",
            Self::NotNow { .. } => "NotNow",
            Self::Refused { .. } => "Refused",
            Self::Unavailable { .. } => "Unavailable",
        }
    }

    /// Returns the server's status, if the error is [`Error::Unavailable`] and has one.
    pub(super) fn status(&self) -> Option<&Status> {
        let Self::Unavailable { source, .. } = self else { return None };
        match source.downcast_ref() {
            Some(kube::Error::Api(status)) => Some(status.as_ref()),
            _ => None,
        }
    }
}

/// Part of the message of a 500 when a webhook didn't answer.
const WEBHOOK_FAILED: &str = "failed calling webhook";

/// Returns the pause that a status asks for.
pub(super) fn retry_after(status: &Status) -> Option<Duration> {
    let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}
