//! The ways in which a call to the API server can fail.

use std::time::Duration;

use kube::core::Status;
use sparkgate_traces::{KeyValue, Span, SpanKind, attribute};

/// A call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// 404: the object, or the namespace in which it should be created, doesn't exist.
    #[error("{action}: {message}")]
    NotFound { action: String, message: String },
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
    /// The API server rejected the request (400, 403, 422, …): repeating the call won't help.
    #[error("{action}: the API server refused it: {message}")]
    Refused { action: String, code: u16, reason: String, message: String },
    /// No answer, or a status that may pass (401, 408, 429, 5xx). The call may or may not have taken effect.
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

    /// Returns the kind of the error for a span.
    fn kind(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "NotFound",
            Self::AlreadyExists { .. } => "AlreadyExists",
            Self::Conflict { .. } => "Conflict",
            Self::Denied { .. } => "Forbidden",
            Self::Refused { .. } => "Refused",
            Self::Unavailable { .. } => "Unavailable",
        }
    }

    /// Returns the server's status, if the error is [`Error::Unavailable`] and has one.
    fn status(&self) -> Option<&Status> {
        let Self::Unavailable { source, .. } = self else { return None };
        match source.downcast_ref() {
            Some(kube::Error::Api(status)) => Some(status.as_ref()),
            _ => None,
        }
    }
}

/// Part of the message of a 500 when a webhook didn't answer.
const WEBHOOK_FAILED: &str = "failed calling webhook";

#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct TimedOut(Duration);

/// Runs one call with its own timeout (kube's client has none) and classifies its failure. The call's span has the name of the
/// action without that of the object.
pub(super) async fn call<T>(
    action: impl Into<String> + Send,
    limit: Duration,
    call: impl Future<Output = kube::Result<T>> + Send,
) -> Result<T, Error> {
    let action = action.into();
    let span = span(&action);
    let answer = in_time(&action, limit, call).await.and_then(|answer| answer.map_err(|error| sort(action, error)));
    if let Err(error) = &answer {
        span.fail(error.kind());
    }
    answer
}

fn span(action: &str) -> Span {
    if !Span::current().is_recorded() {
        return Span::default();
    }
    let name: Vec<_> = action.split(' ').filter(|word| !word.contains('/')).collect();
    Span::child(name.join(" "), SpanKind::Client, || [KeyValue::new(attribute::PEER_SERVICE, "kubernetes")])
}

/// Waits for a future with its own timeout.
pub(super) async fn in_time<T>(
    action: &str,
    limit: Duration,
    waiting: impl Future<Output = T> + Send,
) -> Result<T, Error> {
    let late = |_| Error::Unavailable { action: action.to_owned(), source: Box::new(TimedOut(limit)) };
    tokio::time::timeout(limit, waiting).await.map_err(late)
}

pub(super) fn sort(action: String, error: kube::Error) -> Error {
    match error {
        kube::Error::Api(status) => match status.code {
            404 => Error::NotFound { action, message: status.message.clone() },
            409 if status.reason == "AlreadyExists" => Error::AlreadyExists { action, message: status.message.clone() },
            409 => Error::Conflict { action, message: status.message.clone() },
            403 if passes(&status.message) => Error::Denied { action, message: status.message.clone() },
            // Temporary: a token may be renewed, a queue may drain, a server may come back.
            401 | 408 | 429 | 500..=599 | 0 => {
                Error::Unavailable { action, source: Box::new(kube::Error::Api(status)) }
            }
            code => Error::Refused { action, code, reason: status.reason.clone(), message: status.message.clone() },
        },
        // Nothing was sent, and a retry would fail in the same way.
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => {
            Error::Refused { action, code: 400, reason: "BadRequest".to_owned(), message: error.to_string() }
        }
        other => Error::Unavailable { action, source: Box::new(other) },
    }
}

/// Returns whether a 403 has a cause outside the request: missing rights (`responsewriters.Forbidden` of kube-apiserver),
/// admission whose caches are empty (`admission.NewForbidden` with "not yet ready to handle request"), or a quota that no
/// controller has counted yet. A policy, a webhook or an exceeded quota is final.
fn passes(message: &str) -> bool {
    let lacks_a_right = message.contains("is forbidden: User \"") && message.contains("\" cannot ");
    lacks_a_right
        || message.ends_with("not yet ready to handle request")
        || message.contains("is forbidden: status unknown for quota")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(message: &str) -> Error {
        let status =
            kube::core::Status { code: 403, reason: "Forbidden".into(), message: message.into(), ..Default::default() };
        sort("creating the driver pod a/b".to_owned(), kube::Error::Api(Box::new(status)))
    }

    #[test]
    fn a_denial_that_may_pass_is_not_a_refusal() {
        for message in [
            "pods is forbidden: User \"system:serviceaccount:sparkgate:sparkgate\" cannot create resource \"pods\" in API \
             group \"\" in the namespace \"spark\": RBAC: clusterrole.rbac.authorization.k8s.io \"x\" not found",
            "pods \"pi-driver\" is forbidden: User \"u\" cannot patch resource \"pods\" in API group \"\" in the namespace \"spark\"",
            "pods \"pi-driver\" is forbidden: not yet ready to handle request",
            "pods \"pi-driver\" is forbidden: status unknown for quota: q, resources: pods",
        ] {
            assert!(matches!(sorted(message), Error::Denied { .. }), "{message}");
        }
        for message in [
            "pods \"pi-driver\" is forbidden: exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5",
            "pods \"pi-driver\" is forbidden: violates PodSecurity \"baseline:latest\": privileged",
            "admission webhook \"images.example.org\" denied the request: this image is not allowed",
            "pods \"pi-driver\" is forbidden: error looking up service account spark/x: serviceaccount \"x\" not found",
        ] {
            assert!(matches!(sorted(message), Error::Refused { code: 403, .. }), "{message}");
        }
    }
}
