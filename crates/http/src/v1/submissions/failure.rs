//! Why a submission failed, or isn't running yet.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::Type},
};

use sparkgate_service as service;
use sparkgate_submission::{FailureClass, FailureCode, PodEvent};

/// Why a submission failed, or why it isn't running yet.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::v1) struct Why {
    code: Code,
    class: Class,
    /// A human-readable explanation.
    #[schema(example = "ErrImagePull: no such image")]
    pub(in crate::v1) message: String,
    /// The reason that Kubernetes gives, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "ErrImagePull")]
    reason: Option<String>,
    /// Exit code of the driver's container.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// The signal that the exit code stands for, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "SIGKILL")]
    signal: Option<&'static str>,
    /// Kubernetes' events about the pod. Not in lists.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    events: Vec<Event>,
    /// The end of what the application wrote, from its exception on; of the whole log, if it wrote nothing else. Not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_tail: Option<String>,
}

/// What failed: one word of a closed list.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(super) struct Code(&'static str);

/// What kind of failure it is.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Class(&'static str);

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        word(FailureCode::ALL.iter().map(|code| code.as_str()), "What failed: one word of a closed list.")
    }
}

impl ToSchema for Code {
    fn name() -> std::borrow::Cow<'static, str> {
        "FailureCode".into()
    }
}

impl PartialSchema for Class {
    fn schema() -> RefOr<Schema> {
        word(FailureClass::ALL.iter().map(|class| class.as_str()), "What kind of failure it is.")
    }
}

impl ToSchema for Class {
    fn name() -> std::borrow::Cow<'static, str> {
        "FailureClass".into()
    }
}

/// An event of Kubernetes about a pod, with the number of its occurrences.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PodEvent)]
struct Event {
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<DateTime<Utc>>,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    #[schema(example = "Warning")]
    kind: String,
    #[schema(example = "FailedScheduling")]
    reason: String,
    message: String,
    count: i64,
}

impl From<service::FailureReason> for Why {
    fn from(why: service::FailureReason) -> Self {
        Self {
            code: Code(why.code.as_str()),
            class: Class(why.code.class().as_str()),
            message: why.message,
            reason: why.reason,
            exit_code: why.exit_code,
            signal: why.signal,
            events: why.events.into_iter().map(Event::from).collect(),
            log_tail: why.log_tail,
        }
    }
}

impl From<PodEvent> for Event {
    fn from(event: PodEvent) -> Self {
        Self { at: event.at, kind: event.kind, reason: event.reason, message: event.message, count: event.count }
    }
}

/// Returns the schema of a string that is one of `words`.
pub(super) fn word(words: impl Iterator<Item = &'static str>, about: &str) -> RefOr<Schema> {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).description(Some(about)).into()
}
