//! Problem details (RFC 9457).

use std::{fmt, sync::Arc};

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

mod code;
mod from;
pub mod pointer;
pub mod reason;
pub mod responses;

pub use code::{Code, Retry};

/// The most invalid parts of a request that one problem names.
pub(crate) const MAX_ERRORS: usize = 20;

/// A problem that a handler returns. The interface that the request belongs to writes the response.
#[derive(Debug, Clone)]
pub struct Problem {
    pub code: Code,
    pub detail: String,
    pub errors: Vec<FieldError>,
    /// Members in addition to those of every problem.
    pub members: serde_json::Map<String, serde_json::Value>,
    /// The cause of an error on the server's side, only for the log.
    pub cause: Option<String>,
    /// The seconds after which the same request may succeed, if that makes sense.
    pub retry_after: Option<u16>,
}

/// An invalid part of the request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// The field of the body, as a JSON pointer (RFC 6901) in a URI fragment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "#/sparkProperties/spark.driver.memory")]
    pub pointer: Option<String>,
    /// The name of the query parameter or header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "limit")]
    pub parameter: Option<String>,
    #[schema(example = "expected memory value: actual was 'much'")]
    pub detail: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = self.parameter.as_deref().or(self.pointer.as_deref()).unwrap_or_default();
        write!(f, "{}: {}", part.trim_start_matches("#/"), self.detail)
    }
}

/// The body of a problem (RFC 9457, `application/problem+json`).
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// The kind of problem; `docs/reference/problems.md` lists all kinds.
    #[schema(example = "https://sparkgate.dev/problems/submission-not-found")]
    pub r#type: String,
    #[schema(example = "There is no such submission")]
    pub title: &'static str,
    #[schema(example = 404)]
    pub status: u16,
    pub detail: String,
    /// The path of the request.
    #[schema(example = "/v1/submissions/driver-20260102030405-0000")]
    pub instance: String,
    /// The last part of `type`.
    #[schema(example = "submission-not-found")]
    pub code: &'static str,
    /// The id of the request in the gateway's log.
    pub request_id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<FieldError>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub members: serde_json::Map<String, serde_json::Value>,
}

impl Problem {
    /// Creates a problem; `detail` is for people.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        let (errors, members) = (Vec::new(), serde_json::Map::new());
        Self { code, detail: detail.into(), errors, members, cause: None, retry_after: code.retry_after() }
    }

    /// Creates the problem of an invalid parameter.
    pub fn parameter(name: &str, detail: impl Into<String>) -> Self {
        let error = FieldError { parameter: Some(name.to_owned()), detail: detail.into(), pointer: None };
        Self::for_fields(Code::InvalidParameter, vec![error])
    }

    /// Creates the problem of an invalid field of the body.
    pub fn field(pointer: String, detail: impl Into<String>) -> Self {
        let error = FieldError { pointer: Some(pointer), detail: detail.into(), parameter: None };
        Self::for_fields(Code::InvalidRequest, vec![error])
    }

    /// Creates the problem of all invalid parts of a request.
    pub fn for_fields(code: Code, errors: Vec<FieldError>) -> Self {
        let details: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Self { errors, ..Self::new(code, details.join("; ")) }
    }

    /// Logs it: an error of the server's side with its cause.
    pub fn log(&self) {
        match &self.cause {
            Some(cause) if self.code.status() == 500 => tracing::error!(error = cause, "request failed"),
            Some(cause) => tracing::warn!(error = cause, "request answered with 503"),
            None => tracing::debug!(code = self.code.as_str(), "request refused"),
        }
    }

    /// Adds a member to those of every problem.
    pub fn with(mut self, member: &str, value: impl Into<serde_json::Value>) -> Self {
        self.members.insert(member.to_owned(), value.into());
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = StatusCode::from_u16(self.code.status()).unwrap_or_default().into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}
