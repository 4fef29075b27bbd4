//! What went wrong, as RFC 9457 describes problems.

use std::sync::Arc;

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

mod code;
mod of;

pub(in crate::api) use code::Code;
pub(super) use of::escape;

/// What a handler says of a problem; [`super::finish`] writes it down.
#[derive(Debug, Clone)]
pub(in crate::api) struct Problem {
    pub(super) code: Code,
    pub(super) detail: String,
    pub(super) errors: Vec<FieldError>,
    /// Members beside those that every problem has.
    pub(super) members: serde_json::Map<String, serde_json::Value>,
    /// What a fault of ours is, for the log alone.
    pub(super) cause: Option<String>,
}

/// One part of the request that is at fault.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::api) struct FieldError {
    /// Where in the body, as a JSON pointer (RFC 6901) in a URI fragment.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "#/sparkProperties/spark.driver.memory")]
    pub(super) pointer: Option<String>,
    /// Which parameter of the query or header.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "limit")]
    pub(super) parameter: Option<String>,
    #[schema(example = "expected memory value: actual was 'much'")]
    pub(super) detail: String,
}

/// A problem as it is sent (RFC 9457, `application/problem+json`).
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
pub(in crate::api) struct ProblemBody {
    /// Names the kind of problem; `docs/problems.md` has them all.
    #[schema(example = "https://sparkgate.dev/problems/submission-not-found")]
    pub(super) r#type: String,
    #[schema(example = "There is no such submission")]
    pub(super) title: &'static str,
    #[schema(example = 404)]
    pub(super) status: u16,
    pub(super) detail: String,
    /// The path of the request.
    #[schema(example = "/v1/submissions/driver-20260102030405-0000")]
    pub(super) instance: String,
    /// The last part of `type`.
    #[schema(example = "submission-not-found")]
    pub(super) code: &'static str,
    /// Under which the gateway's log tells more.
    pub(super) request_id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(super) errors: Vec<FieldError>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub(super) members: serde_json::Map<String, serde_json::Value>,
}

impl Problem {
    pub(in crate::api) fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), errors: Vec::new(), members: serde_json::Map::new(), cause: None }
    }

    /// A parameter of the query that can't be used.
    pub(super) fn parameter(name: &str, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let error = FieldError { parameter: Some(name.to_owned()), detail: detail.clone(), pointer: None };
        Self { errors: vec![error], ..Self::new(Code::InvalidParameter, format!("{name}: {detail}")) }
    }

    /// A field of the body that can't be used.
    pub(super) fn field(pointer: String, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        let said = format!("{}: {detail}", pointer.trim_start_matches("#/"));
        let error = FieldError { pointer: Some(pointer), detail, parameter: None };
        Self { errors: vec![error], ..Self::new(Code::InvalidRequest, said) }
    }

    /// With one member more than every problem has.
    pub(super) fn with(mut self, member: &str, value: impl Into<serde_json::Value>) -> Self {
        self.members.insert(member.to_owned(), value.into());
        self
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = StatusCode::from_u16(self.code.status()).unwrap_or_default().into_response();
        if let Some(seconds) = self.code.retry_after() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response.extensions_mut().insert(Arc::new(self));
        response
    }
}
