//! Decides what an unsuccessful answer means.
//!
//! Only a `Status` of Kubernetes refuses a request, or proves that an object doesn't exist. Load balancers, ingresses and proxies in
//! front of an API server answer with pages and with JSON of their own, also with the codes 403 and 404, while they are reloaded or
//! can't reach it. kube makes a `Status` of any body; what it can't know is left out of it, or has a reason that Kubernetes doesn't
//! have.

use kube::core::{
    Status,
    response::{StatusSummary, reason},
};

use super::{
    error::{Error, retry_after},
    quota::{self, Exceeded},
};

/// Bytes of a page that are shown.
const SHOWN: usize = 200;
/// Messages for an object that etcd doesn't take (`ErrRequestTooLarge`; the limit of its client is a little higher). The API server
/// passes them on with a 500.
const TOO_LARGE: [&str; 2] = ["etcdserver: request is too large", "trying to send message larger than max"];

/// An answer that isn't one of Kubernetes.
#[derive(Debug, thiserror::Error)]
#[error("the answer {code} doesn't come from Kubernetes, but from something in front of it: {text}")]
struct NotOfKubernetes {
    code: u16,
    text: String,
}

/// Classifies the failure of a call.
pub(super) fn sort(action: String, error: kube::Error) -> Error {
    match error {
        kube::Error::Api(status) => error_from_status(action, *status),
        // Nothing was sent, and a retry would fail in the same way.
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => {
            Error::Refused { action, code: 400, reason: reason::BAD_REQUEST.to_owned(), message: error.to_string() }
        }
        other => Error::Unavailable { action, source: Box::new(other) },
    }
}

/// Returns the error for an answer of success without the object that was asked for.
pub(super) fn nothing_of_kubernetes(action: String) -> Error {
    page(action, 200, "an answer without the object that was asked for")
}

/// Returns the error for an answer whose body isn't a `Status`.
pub(super) fn page(action: String, code: u16, text: &str) -> Error {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words[..words.floor_char_boundary(SHOWN)].to_owned();
    Error::Unavailable { action, source: Box::new(NotOfKubernetes { code, text }) }
}

impl Error {
    /// Returns whether something in front of the API server answered.
    pub(super) fn is_page(&self) -> bool {
        matches!(self, Self::Unavailable { source, .. } if source.is::<NotOfKubernetes>())
    }
}

fn error_from_status(action: String, status: Status) -> Error {
    let is_verdict = is_verdict(&status.message);
    if !is_of_kubernetes(&status, is_verdict) {
        return page(action, status.code, &status.message);
    }
    let Status { code, message, reason, .. } = &status;
    let (code, message, reason) = (*code, message.clone(), reason.clone());
    let (kind, name) = status.details.as_ref().map_or(("", ""), |details| (&details.kind, &details.name));
    match code {
        429 | 503 if is_verdict => Error::NotNow { action, message, retry_after: retry_after(&status) },
        // Whatever code a webhook or a policy chooses, the object itself was neither there nor missing.
        401 | 404 | 408 | 409 if is_verdict => Error::Refused { action, code, reason, message },
        500 if TOO_LARGE.iter().any(|words| message.contains(words)) => {
            let reason = reason::REQUEST_ENTITY_TOO_LARGE.to_owned();
            Error::Refused { action, code: 413, reason, message }
        }
        404 if !kind.is_empty() && !name.is_empty() => Error::NotFound { action, name: name.to_owned(), message },
        // It doesn't say what is missing: a proxy that speaks Kubernetes' language may not know the cluster, for example.
        404 => page(action, code, &message),
        409 if reason == reason::ALREADY_EXISTS && !name.is_empty() => Error::AlreadyExists { action, message },
        409 => Error::Conflict { action, message },
        403 if passes(&message) => Error::Denied { action, message },
        403 => match quota::exceeded(&message) {
            Some(Exceeded::Now) => Error::QuotaExceeded { action, message },
            Some(Exceeded::Always(why)) => {
                Error::Refused { action, code, reason, message: format!("{message}: {why}") }
            }
            None if is_verdict || !kind.is_empty() => Error::Refused { action, code, reason, message },
            // The API server names the kind of an object that it refuses: this is another server's denial.
            None => Error::Denied { action, message },
        },
        // Temporary: a token may be renewed, a queue may drain, a server may come back.
        401 | 408 | 429 | 500..=599 | 0 => {
            Error::Unavailable { action, source: Box::new(kube::Error::Api(Box::new(status))) }
        }
        code => Error::Refused { action, code, reason, message },
    }
}

/// Returns whether Kubernetes may have sent this status: a failure with one of its reasons. Of a storage error it knows no reason,
/// and a webhook may give any.
fn is_of_kubernetes(status: &Status, is_verdict: bool) -> bool {
    let is_known = reason::is_known(&status.reason) || (status.reason.is_empty() && status.code >= 500);
    status.status == Some(StatusSummary::Failure) && (is_known || is_verdict)
}

/// Returns whether a message is the denial of an admission webhook (`webhookerrors.ToStatusErr`) or of a validating admission policy.
fn is_verdict(message: &str) -> bool {
    message.starts_with("admission webhook \"") && message.contains("denied the request")
        || message.contains("ValidatingAdmissionPolicy '") && message.contains("denied request")
}

/// Returns whether a 403 has a cause outside the request: missing rights (`responsewriters.Forbidden` of kube-apiserver),
/// admission whose caches are empty (`admission.NewForbidden` with "not yet ready to handle request"), or a quota that no
/// controller has counted yet. A policy or a webhook is final.
fn passes(message: &str) -> bool {
    let lacks_a_right = message.contains("is forbidden: User \"") && message.contains("\" cannot ");
    lacks_a_right
        || message.ends_with("not yet ready to handle request")
        || message.contains("is forbidden: status unknown for quota")
}

#[cfg(test)]
mod tests;
