//! Conversions from the errors of the layers below to problems.

use super::{Problem, code::Code, pointer::pointer};
use crate::{
    body,
    request_log::{RequestId, text},
};
use sparkgate_service::{self, Exceeded, FileError, Interrupted, error_chain};
use sparkgate_spark::{Refusal, rest::RequestError};
use sparkgate_submission::SubmissionId;

impl Code {
    /// Returns the kind of problem that an error of a use case is.
    pub fn of(error: &sparkgate_service::Error) -> Self {
        match error {
            sparkgate_service::Error::Refused(_) => Self::InvalidRequest,
            sparkgate_service::Error::Policy { .. } => Self::PolicyViolated,
            sparkgate_service::Error::Full { .. }
            | sparkgate_service::Error::BacklogFull { .. }
            | sparkgate_service::Error::WouldWait { .. } => Self::TooManyRequests,
            sparkgate_service::Error::QueueRefused(_) => Self::QueueRefused,
            sparkgate_service::Error::RecordsFull { .. } => Self::RecordQuotaExceeded,
            sparkgate_service::Error::Busy { .. } => Self::Busy,
            sparkgate_service::Error::Denied(_) => Self::Denied,
            sparkgate_service::Error::KeyReused { .. } => Self::IdempotencyKeyReused,
            sparkgate_service::Error::ClientIdTaken { .. } => Self::ClientIdTaken,
            sparkgate_service::Error::NameTaken { .. } => Self::NameTaken,
            sparkgate_service::Error::Unavailable(_) | sparkgate_service::Error::PerhapsDone(_) => Self::Unavailable,
            sparkgate_service::Error::InDoubt { .. } | sparkgate_service::Error::SubmitBrokenOff(_) => Self::InDoubt,
            sparkgate_service::Error::ClusterUnavailable(_) | sparkgate_service::Error::Unanswered(_) => {
                Self::ClusterUnavailable
            }
            sparkgate_service::Error::FilesUnavailable(_) => Self::FilesUnavailable,
            sparkgate_service::Error::BrokenOff(_) | sparkgate_service::Error::Internal(..) => Self::InternalError,
        }
    }
}

impl From<sparkgate_service::Error> for Problem {
    fn from(error: sparkgate_service::Error) -> Self {
        let (code, cause) = (Code::of(&error), error_chain(&error));
        match error {
            sparkgate_service::Error::Refused(refusal) => refusal.into(),
            sparkgate_service::Error::Policy { ref violations, .. } => {
                let list = serde_json::to_value(violations).unwrap_or_default();
                Self::new(code, format!("{error}.")).with("violations", list)
            }
            sparkgate_service::Error::QueueRefused(refusal) => {
                let problem = Self::from(refusal);
                Self { code, ..problem }
            }
            sparkgate_service::Error::Full { .. }
            | sparkgate_service::Error::BacklogFull { .. }
            | sparkgate_service::Error::WouldWait { .. } => Self::new(code, format!("{error}.")),
            sparkgate_service::Error::RecordsFull { .. } => Self::new(code, format!("{error}.")),
            sparkgate_service::Error::Busy { .. } => {
                Self::new(code, format!("{error}; nothing was done. Try again in a moment."))
            }
            sparkgate_service::Error::Denied(reason) => Self::new(code, format!("{reason}.")),
            sparkgate_service::Error::KeyReused { ref by, .. } => {
                Self::new(code, format!("{error}. Use a new key for a different request."))
                    .with("submissionId", by.as_str())
            }
            sparkgate_service::Error::ClientIdTaken { ref by, .. } => {
                let detail = format!("{error}. Read that submission, or use another id for a different one.");
                Self::new(code, detail).with("submissionId", by.as_str())
            }
            sparkgate_service::Error::NameTaken { ref by, .. } => {
                let detail = format!("{error}. Wait until that submission has ended, or omit `uniqueName`.");
                Self::new(code, detail).with("submissionId", by.as_str())
            }
            sparkgate_service::Error::Unavailable(_) => {
                Self { cause: Some(cause), ..Self::new(code, "Nothing was done; try again in a moment.") }
            }
            sparkgate_service::Error::InDoubt { ref id, .. } => Self::in_doubt(Some(id), cause),
            sparkgate_service::Error::SubmitBrokenOff(_) => Self::in_doubt(None, cause),
            sparkgate_service::Error::BrokenOff(_) => Self::broken_off(cause),
            sparkgate_service::Error::PerhapsDone(_) => Self {
                cause: Some(cause),
                ..Self::new(
                    code,
                    "The database didn't confirm all of it: the requested action may have been done. Repeating the \
                     request is safe; try again in a moment.",
                )
            },
            sparkgate_service::Error::ClusterUnavailable(_) | sparkgate_service::Error::Unanswered(_) => {
                Self { cause: Some(cause), ..Self::new(code, "Kubernetes doesn't answer; try again in a moment.") }
            }
            error @ sparkgate_service::Error::FilesUnavailable(_) => {
                let detail = match error.is_of_a_copy() {
                    true => {
                        "The file store belongs to the database that this gateway's is a copy of; nothing was done. The operator can give it \
                         another store, or run `sparkgate adopt-cluster --same-store` if the original is gone."
                    }
                    false => "The file store doesn't answer; nothing was done. Try again in a moment.",
                };
                Self { cause: Some(cause), ..Self::new(code, detail) }
            }
            sparkgate_service::Error::Internal(..) => Self::internal(cause),
        }
    }
}

impl From<FileError> for Problem {
    fn from(error: FileError) -> Self {
        let code = match error {
            FileError::Service(error) => return error.into(),
            FileError::Off => Code::NotFound,
            FileError::NotFound { .. } | FileError::NotSigned => Code::FileNotFound,
            FileError::Ended(_) => Code::FileExpired,
            FileError::TooLarge(_) => Code::RequestTooLarge,
            FileError::Mismatch { .. } => Code::FileMismatch,
            FileError::Quota { .. } => Code::FileQuotaExceeded,
            FileError::Broken(..) | FileError::TooManyParts(_) => Code::InvalidRequest,
            FileError::Used(_) => Code::FileUsed,
            FileError::TooSlow(..) => Code::UploadTooSlow,
            FileError::Busy => Code::Busy,
        };
        Self::new(code, format!("{error}."))
    }
}

impl From<body::Fault> for Problem {
    fn from(fault: body::Fault) -> Self {
        match fault {
            body::Fault::TooLarge { limit } => Self::new(
                Code::RequestTooLarge,
                format!("The body may have at most {limit} bytes (SPARKGATE_MAX_REQUEST_BODY)."),
            ),
            body::Fault::Broken(why) => Self::new(Code::InvalidRequest, format!("The body could not be read: {why}.")),
            body::Fault::Busy => {
                Self::new(Code::Busy, "The bodies of other requests take all the memory there is for them; try again.")
            }
        }
    }
}

impl From<Exceeded> for Problem {
    fn from(exceeded: Exceeded) -> Self {
        let seconds = exceeded.retry_after.map(|time| time.as_secs() + u64::from(time.subsec_nanos() > 0));
        let retry_after = seconds.map(|seconds| u16::try_from(seconds).unwrap_or(u16::MAX));
        let detail = format!("{exceeded}; an operator of the gateway can raise it.");
        Self { retry_after, ..Self::new(Code::RateLimited, detail) }
    }
}

impl Problem {
    /// Creates the problem of an internal error before anything was done. The cause is only logged.
    pub fn internal(cause: String) -> Self {
        let detail = "Nothing was done. Details are in the gateway's log under the request id.";
        Self { cause: Some(cause), ..Self::new(Code::InternalError, detail) }
    }

    /// Creates the problem of an internal error after which the requested action may have been done.
    pub fn broken_off(cause: String) -> Self {
        let detail = "The requested action may have been done. Details are in the gateway's log under the request id.";
        Self { cause: Some(cause), ..Self::new(Code::InternalError, detail) }
    }

    /// Creates the problem of a request whose handler panicked, in the words of APIs whose errors have no id of the request.
    pub fn panicked(id: &RequestId) -> Self {
        let detail = format!(
            "Internal server error: the requested action may have been done. \
             Details are in the gateway's log under request id {}.",
            text(id)
        );
        Self::new(Code::InternalError, detail)
    }

    /// Creates the problem of a submission whose row can't be read. `what` says what was done with it, or found.
    pub fn unreadable(id: &SubmissionId, what: &str, error: &dyn std::error::Error) -> Self {
        let detail = format!("{id} {what}, but its record can't be read. Details are in the gateway's log.");
        Self { cause: Some(error_chain(error)), ..Self::new(Code::InternalError, detail) }
            .with("submissionId", id.as_str())
    }

    /// Creates the problem of a submission that may have been accepted, under `id` if the id is known.
    fn in_doubt(id: Option<&SubmissionId>, cause: String) -> Self {
        let what = match id {
            Some(id) => {
                format!(
                    "The connection to the database was lost while {id} was being written: it may have been accepted."
                )
            }
            None => "The gateway failed while the submission was being written: it may have been accepted.".to_owned(),
        };
        let detail =
            format!("{what} With an idempotency key it is safe to repeat the request; without one, check first.");
        let problem = Self { cause: Some(cause), ..Self::new(Code::InDoubt, detail) };
        match id {
            Some(id) => problem.with("submissionId", id.as_str()),
            None => problem,
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::field(pointer(&refusal.field), refusal.reason)
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Empty => Self::new(Code::InvalidJson, "The body is empty."),
            RequestError::Syntax(why) | RequestError::CutOff(why) => {
                Self::new(Code::InvalidJson, format!("The body can't be read as JSON: {why}."))
            }
            RequestError::TooDeep { depth } => {
                Self::new(Code::InvalidJson, format!("The body is nested too deeply: {depth} levels."))
            }
            other => Self::new(Code::InvalidRequest, other.to_string()),
        }
    }
}

impl From<Interrupted> for Problem {
    fn from(interrupted: Interrupted) -> Self {
        let code = match interrupted {
            Interrupted::Expired(_) => Code::CursorExpired,
            Interrupted::Future { .. } => Code::InvalidCursor,
            Interrupted::TooMany(_) => Code::TooManyRequests,
            Interrupted::Limited(exceeded) => return exceeded.into(),
            Interrupted::Closing => Code::Unavailable,
            Interrupted::Failed(error) => return error.into(),
        };
        Self::new(code, format!("{interrupted}."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_a_tenant_are_problems_of_their_own() {
        let tenant = || "red".to_owned();
        let busy = Problem::from(sparkgate_service::Error::Busy { tenant: tenant() });
        assert_eq!((busy.code, busy.retry_after.is_some()), (Code::Busy, true), "{busy:?}");
        assert!(busy.detail.contains("tenant red") && busy.detail.contains("Try again"), "{busy:?}");
        let full = Problem::from(sparkgate_service::Error::RecordsFull { tenant: tenant(), bytes: 9, most: 10 });
        assert_eq!((full.code, full.retry_after), (Code::RecordQuotaExceeded, None), "{full:?}");
    }
}
