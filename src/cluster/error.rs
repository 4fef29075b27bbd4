//! What a call to the API server can come to.

use std::time::Duration;

use kube::core::Status;

/// A call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// 404: the object, or the namespace it should go to, isn't there.
    #[error("{action}: {message}")]
    NotFound { action: String, message: String },
    /// 409 `AlreadyExists`: the name is taken.
    #[error("{action}: {message}")]
    AlreadyExists { action: String, message: String },
    /// Any other 409: a precondition that doesn't hold, or two writers at once.
    #[error("{action}: {message}")]
    Conflict { action: String, message: String },
    /// 403 for a reason that passes: the account lacks a right that an operator can grant, or the API server isn't ready
    /// to judge the request. An API server that is starting denies everything for a moment, because its RBAC caches are
    /// empty.
    #[error("{action}: the API server denied it: {message}")]
    Denied { action: String, message: String },
    /// The API server understood and said no (400, 403, 422, …): repeating the call won't help.
    #[error("{action}: the API server refused it: {message}")]
    Refused { action: String, code: u16, reason: String, message: String },
    /// No answer, or one that says «later» (401, 408, 429, 5xx). The call may or may not have taken effect.
    #[error("{action}: the Kubernetes API is not available")]
    Unavailable { action: String, source: Box<dyn std::error::Error + Send + Sync> },
}

impl Error {
    /// Whether the server doesn't know who asks.
    pub fn is_unauthorized(&self) -> bool {
        let Self::Unavailable { source, .. } = self else { return false };
        matches!(source.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == 401)
    }

    /// Whether nothing may get through just now, to this namespace at least: no connection, no answer, one that asks to wait,
    /// or a webhook that can't be asked. An error of the server about one object is something else.
    pub fn is_outage(&self) -> bool {
        match self.status() {
            Some(status) => matches!(status.code, 401 | 429 | 503) || status.message.contains(WEBHOOK_FAILED),
            None => matches!(self, Self::Unavailable { .. }),
        }
    }

    /// Whether the server, or a webhook through it, said so.
    pub fn is_answer(&self) -> bool {
        !matches!(self, Self::Unavailable { .. }) || self.status().is_some()
    }

    /// What the server said that may pass.
    fn status(&self) -> Option<&Status> {
        let Self::Unavailable { source, .. } = self else { return None };
        match source.downcast_ref() {
            Some(kube::Error::Api(status)) => Some(status.as_ref()),
            _ => None,
        }
    }
}

/// In the message of a 500: no answer of a webhook.
const WEBHOOK_FAILED: &str = "failed calling webhook";

#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct TimedOut(Duration);

/// Runs one call under its own time-out (kube's client has none) and sorts its failure.
pub(super) async fn call<T>(
    action: impl Into<String> + Send,
    limit: Duration,
    call: impl Future<Output = kube::Result<T>> + Send,
) -> Result<T, Error> {
    let action = action.into();
    in_time(&action, limit, call).await?.map_err(|error| sort(action, error))
}

/// Waits for something under its own time-out.
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
            // A token may be renewed, a queue may drain, a server may come back.
            401 | 408 | 429 | 500..=599 | 0 => {
                Error::Unavailable { action, source: Box::new(kube::Error::Api(status)) }
            }
            code => Error::Refused { action, code, reason: status.reason.clone(), message: status.message.clone() },
        },
        // Nothing was sent, and nothing else would be next time.
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => {
            Error::Refused { action, code: 400, reason: "BadRequest".to_owned(), message: error.to_string() }
        }
        other => Error::Unavailable { action, source: Box::new(other) },
    }
}

/// Whether a 403 has a cause outside the request: missing rights (`responsewriters.Forbidden` of kube-apiserver),
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
    fn a_denial_that_an_operator_or_time_removes_passes() {
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
