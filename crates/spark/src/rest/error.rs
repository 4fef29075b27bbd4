//! The reasons why a body is not a request that can be run.

use crate::refusal::Refusal;

/// An error in a create request. Its text is the `message` of Spark's `ErrorResponse`: Spark's own exception first, then, where
/// Spark doesn't report it, the cause that names the field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("Malformed request: com.fasterxml.jackson.core.JsonParseException: {0}")]
    Syntax(String),
    #[error("Malformed request: com.fasterxml.jackson.core.io.JsonEOFException: Unexpected end-of-input: {0}")]
    CutOff(String),
    #[error(
        "Malformed request: com.fasterxml.jackson.databind.exc.MismatchedInputException: \
         No content to map due to end-of-input"
    )]
    Empty,
    #[error(
        "Malformed request: com.fasterxml.jackson.core.exc.StreamConstraintsException: \
         Document nesting depth ({depth}) exceeds the maximum allowed ({max})",
        max = Self::MAX_DEPTH
    )]
    TooDeep { depth: usize },
    /// A value of the wrong JSON type; `path` looks like `["sparkProperties"]["spark.app.name"]`.
    #[error(
        "Malformed request: com.fasterxml.jackson.databind.exc.MismatchedInputException: {problem}\n \
         at (through reference chain: org.apache.spark.deploy.rest.CreateSubmissionRequest{path})"
    )]
    Mismatch { problem: String, path: String },
    #[error(
        "Malformed request: org.apache.spark.deploy.rest.SubmitRestMissingFieldException: \
         Action field not found in JSON:\n{json}"
    )]
    NoAction { json: String },
    /// Spark answers this with an HTML page (HTTP 500), although it is a client error.
    #[error("Malformed request: java.lang.ClassNotFoundException: org.apache.spark.deploy.rest.{0}")]
    NoSuchMessage(String),
    #[error(
        "Malformed request: org.apache.spark.deploy.rest.SubmitRestProtocolException: \
         Validation of message {message} failed!\n\
         Caused by: org.apache.spark.deploy.rest.SubmitRestProtocolException: {cause}"
    )]
    Invalid { message: String, cause: String },
    #[error("Malformed request: org.apache.spark.deploy.rest.SubmitRestMissingFieldException: Main class is missing.")]
    NoMainClass,
    #[error("Received message of unexpected type {0}.")]
    Unexpected(String),
}

impl RequestError {
    /// Jackson's `StreamReadConstraints.getMaxNestingDepth()`.
    pub(super) const MAX_DEPTH: usize = 1000;

    /// Creates the error for a `CreateSubmissionRequest.validate` that failed for this reason.
    pub(super) fn invalid(cause: impl Into<String>) -> Self {
        Self::Invalid { message: "CreateSubmissionRequest".to_owned(), cause: cause.into() }
    }

    pub(super) fn json(error: &serde_json::Error) -> Self {
        if error.is_eof() { Self::CutOff(error.to_string()) } else { Self::Syntax(error.to_string()) }
    }
}

/// Reports a refusal as a failed validation.
impl From<Refusal> for RequestError {
    fn from(refusal: Refusal) -> Self {
        Self::invalid(refusal.to_string())
    }
}
