//! From the errors of the layers below to problems.

use super::{Code, Problem};
use crate::{
    service::{self, chain},
    spark::{Refusal, rest::RequestError},
    submission::SubmissionId,
};

impl From<service::Error> for Problem {
    fn from(error: service::Error) -> Self {
        let cause = chain(&error);
        match error {
            service::Error::Refused(refusal) => refusal.into(),
            service::Error::KeyReused { ref by, .. } => {
                Self::new(Code::IdempotencyKeyReused, format!("{error}. Send another key with another request."))
                    .with("submissionId", by.as_str())
            }
            service::Error::NameTaken { ref by, .. } => {
                let detail = format!("{error}. Wait for its end, or leave `uniqueName` out.");
                Self::new(Code::NameTaken, detail).with("submissionId", by.as_str())
            }
            service::Error::Unavailable(_) => {
                Self { cause: Some(cause), ..Self::new(Code::Unavailable, "Nothing was done; try again in a moment.") }
            }
            service::Error::InDoubt { ref id, .. } => Self::in_doubt(Some(id), cause),
            service::Error::PerhapsDone(_) => Self {
                cause: Some(cause),
                ..Self::new(
                    Code::Unavailable,
                    "The database went away meanwhile: what was asked for may have been done. Asking again does no \
                     harm; try again in a moment.",
                )
            },
            service::Error::ClusterUnavailable(_) | service::Error::Unanswered(_) => Self {
                cause: Some(cause),
                ..Self::new(Code::ClusterUnavailable, "Kubernetes gives no answer just now; try again in a moment.")
            },
            service::Error::Internal(..) => Self::internal(cause),
        }
    }
}

impl Problem {
    /// A fault of ours, before anything was done; only the log tells which.
    pub(in crate::api) fn internal(cause: String) -> Self {
        let detail = "Nothing was done. The gateway's log tells more under the request id.";
        Self { cause: Some(cause), ..Self::new(Code::InternalError, detail) }
    }

    /// The same, where something may have been done before.
    pub(in crate::api) fn broken_off(cause: String) -> Self {
        let detail = "What was asked for may have been done. The gateway's log tells more under the request id.";
        Self { cause: Some(cause), ..Self::new(Code::InternalError, detail) }
    }

    /// What was done, or found, with a submission whose row can't be read.
    pub(in crate::api) fn unreadable(id: &SubmissionId, what: &str, error: &dyn std::error::Error) -> Self {
        let detail = format!("{id} {what}, but its record can't be read. The gateway's log tells more.");
        Self { cause: Some(chain(error)), ..Self::new(Code::InternalError, detail) }.with("submissionId", id.as_str())
    }

    /// A submission may be kept, under this id if it is known.
    pub(in crate::api) fn in_doubt(id: Option<&SubmissionId>, cause: String) -> Self {
        let what = match id {
            Some(id) => format!("The database went away while {id} was being written: it may have been accepted."),
            None => "The gateway failed while the submission was being written: it may have been accepted.".to_owned(),
        };
        let detail =
            format!("{what} With an idempotency key the same request can be repeated safely; without one, look first.");
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
                Self::new(Code::InvalidJson, format!("The body is nested {depth} levels deep, which is too much."))
            }
            RequestError::Mismatch { problem, path } => Self::field(chained(&path), problem),
            RequestError::Invalid { cause, .. } => Self::new(Code::InvalidRequest, cause),
            other => Self::new(Code::InvalidRequest, other.to_string()),
        }
    }
}

/// `sparkProperties["spark.x"]`, `labels["a/b"]`, `appArgs[4]`, `maxRetries.application`: as a pointer.
fn pointer(field: &str) -> String {
    let (name, key) = match field.split_once("[\"") {
        Some((name, key)) => (name.to_owned(), Some(key.strip_suffix("\"]").unwrap_or(key))),
        None => (field.replace(['.', '['], "/").replace(']', ""), None),
    };
    match key {
        Some(key) => format!("#/{name}/{}", escape(key)),
        None => format!("#/{name}"),
    }
}

/// Jackson's reference chain, `["sparkProperties"]["spark.x"]`.
fn chained(path: &str) -> String {
    let keys = path.split("[\"").skip(1).map(|part| part.strip_suffix("\"]").unwrap_or(part));
    keys.fold("#".to_owned(), |pointer, key| format!("{pointer}/{}", escape(key)))
}

/// RFC 6901.
pub(in crate::api::v1) fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_becomes_a_pointer() {
        for (field, expected) in [
            ("appResource", "#/appResource"),
            ("sparkProperties[\"spark.driver.memory\"]", "#/sparkProperties/spark.driver.memory"),
            ("labels[\"example.org/~x\"]", "#/labels/example.org~1~0x"),
            ("maxRetries.application", "#/maxRetries/application"),
            ("appArgs[4]", "#/appArgs/4"),
        ] {
            assert_eq!(pointer(field), expected);
        }
        assert_eq!(chained("[\"sparkProperties\"][\"a/b\"]"), "#/sparkProperties/a~1b");
    }
}
