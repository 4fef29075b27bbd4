//! The closed list of problems.

/// A kind of problem: a stable name, the last part of the problem's `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::api) enum Code {
    InvalidJson,
    InvalidRequest,
    InvalidParameter,
    InvalidCursor,
    Unauthenticated,
    Denied,
    Forbidden,
    FileQuotaExceeded,
    NotFound,
    SubmissionNotFound,
    ExecutorNotFound,
    LogNotFound,
    ManifestNotFound,
    FileNotFound,
    SparkUiNotFound,
    WebhookNotFound,
    DeliveryNotFound,
    NotFinished,
    MethodNotAllowed,
    UploadTooSlow,
    NameTaken,
    ClientIdTaken,
    FileUsed,
    UploadOffsetMismatch,
    CursorExpired,
    FileExpired,
    RequestTooLarge,
    UnsupportedMediaType,
    IdempotencyKeyReused,
    PolicyViolated,
    FileMismatch,
    SubmissionFailed,
    TooManyRequests,
    RateLimited,
    InternalError,
    InDoubt,
    Busy,
    Unavailable,
    ClusterUnavailable,
    FilesUnavailable,
    SparkUiUnavailable,
    AuthenticationUnavailable,
    TimedOut,
}

impl Code {
    #[cfg(test)]
    pub(in crate::api) const ALL: [Code; 43] = [
        Self::InvalidJson,
        Self::InvalidRequest,
        Self::InvalidParameter,
        Self::InvalidCursor,
        Self::Unauthenticated,
        Self::Denied,
        Self::Forbidden,
        Self::FileQuotaExceeded,
        Self::NotFound,
        Self::SubmissionNotFound,
        Self::ExecutorNotFound,
        Self::LogNotFound,
        Self::ManifestNotFound,
        Self::FileNotFound,
        Self::SparkUiNotFound,
        Self::WebhookNotFound,
        Self::DeliveryNotFound,
        Self::NotFinished,
        Self::MethodNotAllowed,
        Self::UploadTooSlow,
        Self::NameTaken,
        Self::ClientIdTaken,
        Self::FileUsed,
        Self::UploadOffsetMismatch,
        Self::CursorExpired,
        Self::FileExpired,
        Self::RequestTooLarge,
        Self::UnsupportedMediaType,
        Self::IdempotencyKeyReused,
        Self::PolicyViolated,
        Self::FileMismatch,
        Self::SubmissionFailed,
        Self::TooManyRequests,
        Self::RateLimited,
        Self::InternalError,
        Self::InDoubt,
        Self::Busy,
        Self::Unavailable,
        Self::ClusterUnavailable,
        Self::FilesUnavailable,
        Self::SparkUiUnavailable,
        Self::AuthenticationUnavailable,
        Self::TimedOut,
    ];

    pub(in crate::api) fn as_str(self) -> &'static str {
        self.row().0
    }

    pub(in crate::api) fn status(self) -> u16 {
        self.row().1
    }

    /// Returns the title, which is the same for every problem of this kind.
    pub(in crate::api) fn title(self) -> &'static str {
        self.row().2
    }

    /// Returns the seconds after which the same request may succeed, if repeating it is safe and makes sense.
    pub(in crate::api) fn retry_after(self) -> Option<u16> {
        matches!(
            self,
            Self::TooManyRequests
                | Self::Busy
                | Self::Unavailable
                | Self::ClusterUnavailable
                | Self::FilesUnavailable
                | Self::SparkUiUnavailable
                | Self::AuthenticationUnavailable
        )
        .then_some(1)
    }

    fn row(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::InvalidJson => ("invalid-json", 400, "The body is not a JSON object"),
            Self::InvalidRequest => ("invalid-request", 400, "The request can't be run as it is"),
            Self::InvalidParameter => ("invalid-parameter", 400, "A parameter can't be used"),
            Self::InvalidCursor => ("invalid-cursor", 400, "The cursor is not one of this list"),
            Self::Unauthenticated => ("unauthenticated", 401, "The request has no valid credentials"),
            Self::Denied => ("denied", 403, "The caller may not do this"),
            Self::Forbidden => ("forbidden", 403, "A browser may not send this request"),
            Self::FileQuotaExceeded => ("file-quota-exceeded", 403, "The files of the tenant take too much"),
            Self::NotFound => ("not-found", 404, "There is nothing here"),
            Self::SubmissionNotFound => ("submission-not-found", 404, "There is no such submission"),
            Self::ExecutorNotFound => ("executor-not-found", 404, "There is no such executor"),
            Self::LogNotFound => ("log-not-found", 404, "There is no log"),
            Self::ManifestNotFound => ("manifest-not-found", 404, "The objects are not kept"),
            Self::FileNotFound => ("file-not-found", 404, "There is no such file"),
            Self::SparkUiNotFound => ("spark-ui-not-found", 404, "There is no Spark UI"),
            Self::WebhookNotFound => ("webhook-not-found", 404, "There is no such webhook"),
            Self::DeliveryNotFound => ("delivery-not-found", 404, "There is no such delivery"),
            Self::NotFinished => ("not-finished", 404, "There is no outcome yet"),
            Self::UploadTooSlow => ("upload-too-slow", 408, "The upload is too slow"),
            Self::MethodNotAllowed => ("method-not-allowed", 405, "The resource has no such method"),
            Self::NameTaken => ("name-taken", 409, "A live submission has this name"),
            Self::ClientIdTaken => ("client-id-taken", 409, "Another submission has this id of a client"),
            Self::FileUsed => ("file-used", 409, "Live submissions use the file"),
            Self::UploadOffsetMismatch => ("upload-offset-mismatch", 409, "The upload continues elsewhere"),
            Self::CursorExpired => ("cursor-expired", 410, "What comes after the cursor is not kept any more"),
            Self::FileExpired => ("file-expired", 410, "The URL of a file has expired"),
            Self::RequestTooLarge => ("request-too-large", 413, "The body is too large"),
            Self::UnsupportedMediaType => ("unsupported-media-type", 415, "The body has another media type"),
            Self::IdempotencyKeyReused => {
                ("idempotency-key-reused", 422, "The idempotency key was used for another request")
            }
            Self::PolicyViolated => ("policy-violated", 422, "The policy refuses the driver"),
            Self::FileMismatch => ("file-mismatch", 422, "The content is not that of the announced file"),
            Self::SubmissionFailed => ("submission-failed", 424, "The submission did not succeed"),
            Self::TooManyRequests => ("too-many-requests", 429, "There is no room for more just now"),
            Self::RateLimited => ("rate-limited", 429, "The caller sends too much"),
            Self::InternalError => ("internal-error", 500, "A fault of the gateway"),
            Self::InDoubt => ("in-doubt", 503, "The submission may have been accepted"),
            Self::Busy => ("busy", 503, "The gateway is receiving too much at once"),
            Self::Unavailable => ("unavailable", 503, "The database can't be reached"),
            Self::ClusterUnavailable => ("cluster-unavailable", 503, "The cluster can't be reached"),
            Self::FilesUnavailable => ("files-unavailable", 503, "The file store can't be reached"),
            Self::SparkUiUnavailable => ("spark-ui-unavailable", 503, "The Spark UI doesn't answer"),
            Self::AuthenticationUnavailable => {
                ("authentication-unavailable", 503, "The credentials can't be checked now")
            }
            Self::TimedOut => ("timed-out", 503, "The request took too long"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn every_problem_is_documented() {
        let page = include_str!("../../../docs/problems.md");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        for code in Code::ALL {
            let row = format!("| `{}` | {} | {} |", code.as_str(), code.status(), code.title());
            assert!(rows.iter().any(|line| line.starts_with(&row)), "docs/problems.md lacks {row}");
        }
        assert_eq!(rows.len(), Code::ALL.len());
    }
}
