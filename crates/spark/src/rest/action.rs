//! The actions of the protocol and the messages that belong to them.

use crate::version::SparkVersion;

/// The path segment after `/v1/submissions/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Create,
    Kill,
    KillAll,
    Status,
    Clear,
    Readyz,
}

impl Action {
    /// Parses a path segment. `killall`, `clear` and `readyz` were added in Spark 4.0.
    pub fn from_path(word: &str, version: SparkVersion) -> Option<Self> {
        match word {
            "create" => Some(Self::Create),
            "kill" => Some(Self::Kill),
            "status" => Some(Self::Status),
            _ if version < SparkVersion::V4_0 => None,
            "killall" => Some(Self::KillAll),
            "clear" => Some(Self::Clear),
            "readyz" => Some(Self::Readyz),
            _ => None,
        }
    }

    /// Returns whether the action is a read (GET and HEAD); the others change something and are POSTs.
    pub fn is_read(self) -> bool {
        matches!(self, Self::Status | Self::Readyz)
    }
}

/// Returns the required fields of a message class of Spark other than `CreateSubmissionRequest`, or `None` if there is no such
/// class. A client may name any of these classes as the `action` of a create request; Spark validates the message and then
/// answers that it didn't expect it.
pub(super) fn required_fields(class: &str, version: SparkVersion) -> Option<&'static [&'static str]> {
    let since_4_0 = matches!(class, "KillAllSubmissionResponse" | "ClearResponse" | "ReadyzResponse");
    match class {
        _ if since_4_0 && version < SparkVersion::V4_0 => None,
        "CreateSubmissionResponse" | "KillAllSubmissionResponse" | "ClearResponse" | "ReadyzResponse" => {
            Some(&["serverSparkVersion", "success"])
        }
        "KillSubmissionResponse" | "SubmissionStatusResponse" => {
            Some(&["serverSparkVersion", "submissionId", "success"])
        }
        "ErrorResponse" => Some(&["serverSparkVersion", "message"]),
        _ => None,
    }
}
