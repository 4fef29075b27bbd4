//! Parses one line of a watch, and classifies why a watch ends early.

use kube::core::Status;
use serde_json::value::RawValue;

use super::{
    pods::{Event, bookmark},
    sort::{Sorted, sort, sort_pod},
};
use crate::Error;
use sparkgate_submission::{Installation, error_chain};

/// Why a watch ended early.
pub(super) enum Trouble {
    /// The watch can be retried from its position.
    Broken(String),
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
            Err(Trouble::of_code(status.code, broke_off(status.message)))
        }
        _ => Ok(Sorted::default()),
    }
}

impl Trouble {
    /// Classifies a request that failed.
    pub(super) fn of(error: &Error) -> Self {
        let code = match error {
            Error::Refused { code, .. } => *code,
            Error::Unavailable { source, .. } => match source.downcast_ref() {
                Some(kube::Error::Api(status)) => status.code,
                _ => 0,
            },
            _ => 0,
        };
        Self::of_code(code, error_chain(error))
    }

    /// Classifies a status code: the version is too old (410), not a version (400) or in the future (504), or the server can't
    /// continue at the moment.
    fn of_code(code: u16, reason: String) -> Self {
        if matches!(code, 400 | 410 | 504) { Self::Lost(reason) } else { Self::Broken(reason) }
    }

    /// Classifies a stream that was not read to its end.
    pub(super) fn broke_off(why: impl std::fmt::Display) -> Self {
        Self::Broken(broke_off(why))
    }
}

fn broke_off(why: impl std::fmt::Display) -> String {
    format!("the watch of pods was interrupted: {why}")
}
