//! Parses one line of a watch, and classifies why a watch ends early.

use std::time::Duration;

use kube::core::Status;
use serde_json::value::RawValue;

use super::{
    pods::{Event, bookmark},
    sort::{Sorted, sort, sort_pod},
};
use crate::{answer, error::Error};
use sparkgate_submission::{Installation, error_chain};

/// Why a watch ended early.
pub(super) enum Trouble {
    /// The watch can be retried from its position, after the pause that the server asks for.
    Broken(String, Option<Duration>),
    /// The watch can't resume from its position: the version is too old, or the server doesn't know it at all.
    Lost(String),
    /// The server ended the watch at once, without an error.
    Hasty,
}

/// Parses a line. The result is empty if the line is of a kind that we don't know.
pub(super) fn event(line: &[u8], installation: Option<&Installation>) -> Result<Sorted, Trouble> {
    // Nearly all lines carry a pod that can be read: these are parsed in one pass.
    if let Ok(Event { kind, object }) = serde_json::from_slice(line)
        && let "ADDED" | "MODIFIED" | "DELETED" = kind
    {
        return Ok(sort_pod(object, kind == "DELETED", installation));
    }
    let event: Event<'_, &RawValue> = match serde_json::from_slice(line) {
        Ok(event) => event,
        Err(error) => {
            tracing::error!(%error, "an event of the pod watch can't be read and is skipped");
            return Ok(Sorted::default());
        }
    };
    match event.kind {
        "ADDED" | "MODIFIED" => Ok(sort(event.object.get(), false, installation)),
        "DELETED" => Ok(sort(event.object.get(), true, installation)),
        "BOOKMARK" => Ok(Sorted { resource_version: bookmark(event.object.get()), ..Sorted::default() }),
        "ERROR" => {
            let status: Status = serde_json::from_str(event.object.get()).unwrap_or_default();
            let reason = broke_off(&status.message);
            let error = answer::sort(String::new(), kube::Error::Api(Box::new(status)));
            Err(Trouble::classified(&error, reason))
        }
        _ => Ok(Sorted::default()),
    }
}

impl Trouble {
    /// Classifies a request that failed.
    pub(super) fn of(error: &Error) -> Self {
        Self::classified(error, error_chain(error))
    }

    /// The version is too old (410), not a version (400) or in the future (504 of Kubernetes itself), or the server can't continue at
    /// the moment. A load balancer whose server is too slow answers 504, too, and then another list would make it slower.
    fn classified(error: &Error, reason: String) -> Self {
        let is_lost = match error {
            Error::Refused { code, .. } => matches!(code, 400 | 410),
            error => error.status().is_some_and(|status| status.code == 504 && is_in_the_future(status)),
        };
        if is_lost { Self::Lost(reason) } else { Self::Broken(reason, error.retry_after()) }
    }

    /// Classifies a stream that was not read to its end.
    pub(super) fn broke_off(why: impl std::fmt::Display) -> Self {
        Self::Broken(broke_off(why), None)
    }
}

/// Returns whether a server refused a version that it hasn't reached (`NewTooLargeResourceVersionError`).
fn is_in_the_future(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    causes.any(|cause| cause.reason == "ResourceVersionTooLarge")
        || status.message.contains("Too large resource version")
}

fn broke_off(why: impl std::fmt::Display) -> String {
    format!("the watch of pods was interrupted: {why}")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(status: Value) -> Trouble {
        let status: Status = serde_json::from_value(status).unwrap();
        Trouble::of(&answer::sort("watching our pods".to_owned(), kube::Error::Api(Box::new(status))))
    }

    fn failure(code: u16, reason: &str, message: &str) -> Value {
        json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message})
    }

    #[test]
    fn a_position_is_lost_only_if_kubernetes_says_so() {
        for (code, reason, message) in [
            (400, "BadRequest", "invalid resource version"),
            (410, "Expired", "too old resource version: 1 (5)"),
            (410, "Gone", "the history is compacted"),
            (504, "Timeout", "Timeout: Too large resource version: 9, current: 5"),
        ] {
            assert!(matches!(of(failure(code, reason, message)), Trouble::Lost(_)), "{code} {reason}");
            let line = json!({"type": "ERROR", "object": failure(code, reason, message)}).to_string();
            assert!(matches!(event(line.as_bytes(), None), Err(Trouble::Lost(_))), "{code} {reason}");
        }
        for (code, reason, message) in [
            (504, "Timeout", "request did not complete within the allotted timeout"),
            (504, "Failed to parse error data", "<html>504 Gateway Time-out</html>"),
            (410, "Failed to parse error data", "gone"),
            (400, "Failed to parse error data", "<html>400 The plain HTTP request was sent to HTTPS port</html>"),
            (500, "InternalError", "etcdserver: leader changed"),
        ] {
            assert!(matches!(of(failure(code, reason, message)), Trouble::Broken(..)), "{code} {message}");
        }
        let mut busy = failure(429, "TooManyRequests", "busy");
        busy["details"] = json!({"retryAfterSeconds": 3});
        assert!(matches!(of(busy), Trouble::Broken(_, Some(pause)) if pause == Duration::from_secs(3)));
    }
}
