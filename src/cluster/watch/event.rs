//! What one line of a watch tells, and why a watch ends before its time.

use kube::core::Status;
use serde_json::value::RawValue;

use super::{
    pods::{Event, bookmark},
    sort::{Sorted, sort, sort_pod},
};
use crate::{cluster::Error, submission::Installation};

/// Why a watch ended before its time.
pub(super) enum Trouble {
    /// It can be tried again from where it was.
    Broken(String),
    /// There is no way on from where it was: too old a version, or one that the server doesn't know at all.
    Lost(String),
    /// The server ended it at once, without a word.
    Hasty,
}

/// What a line tells; nothing if it is none that we know.
pub(super) fn event(line: &[u8], installation: Option<&Installation>) -> Result<Sorted, Trouble> {
    // Nearly all are of pods that can be read: they are gone through once.
    if let Ok(Event { kind, object }) = serde_json::from_slice(line)
        && let "ADDED" | "MODIFIED" | "DELETED" = kind
    {
        return Ok(sort_pod(object, kind == "DELETED", installation));
    }
    let event: Event<'_, &RawValue> = match serde_json::from_slice(line) {
        Ok(event) => event,
        Err(error) => {
            tracing::error!(%error, "an event of the watch of pods can't be read and is passed over");
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
    /// Of a request that failed.
    pub(super) fn of(error: &Error) -> Self {
        let code = match error {
            Error::Refused { code, .. } => *code,
            Error::Unavailable { source, .. } => match source.downcast_ref() {
                Some(kube::Error::Api(status)) => status.code,
                _ => 0,
            },
            _ => 0,
        };
        Self::of_code(code, reason(error))
    }

    /// A version is too old (410), none at all (400) or of the future (504), or the server can't go on just now.
    fn of_code(code: u16, reason: String) -> Self {
        if matches!(code, 400 | 410 | 504) { Self::Lost(reason) } else { Self::Broken(reason) }
    }

    /// Of a stream that was not read to its end.
    pub(super) fn broke_off(why: impl std::fmt::Display) -> Self {
        Self::Broken(broke_off(why))
    }
}

fn broke_off(why: impl std::fmt::Display) -> String {
    format!("the watch of pods broke off: {why}")
}

/// An error with its causes.
pub(super) fn reason(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
