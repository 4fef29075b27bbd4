//! The answer to a refused request: a `Status` object of the Kubernetes API, with the messages of kube-apiserver.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::resource::Resource;

/// The result of every verb.
pub(super) type Answer<T> = Result<T, Failure>;

/// A refusal: HTTP status, machine-readable reason, message and details.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    code: StatusCode,
    reason: &'static str,
    message: String,
    details: Value,
}

/// One error in a field of an object.
#[derive(Debug, Clone)]
pub(super) struct Cause {
    reason: &'static str,
    field: String,
    message: String,
}

impl Failure {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: json!({}) }
    }

    fn about(mut self, resource: &Resource, name: &str) -> Self {
        self.details = json!({ "name": name, "kind": resource.plural });
        if !resource.group.is_empty() {
            self.details["group"] = resource.group.into();
        }
        self
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(super) fn not_found(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", resource.qualified());
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(resource, name)
    }

    /// The path names a resource that is not served.
    pub(super) fn no_such_resource() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
    }

    pub(super) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    pub(super) fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} \"{name}\" already exists", resource.qualified());
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(resource, name)
    }

    pub(super) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", resource.qualified());
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(resource, name)
    }

    /// A pod that cannot be bound to a node.
    pub(super) fn binding_conflict(name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on pods/binding \"{name}\": {why}");
        let mut failure = Self::new(StatusCode::CONFLICT, "Conflict", message);
        failure.details = json!({ "name": name, "kind": "pods/binding" });
        failure
    }

    /// The object is invalid, for the reasons in `causes`.
    pub(super) fn invalid(resource: &Resource, name: &str, causes: Vec<Cause>) -> Self {
        let texts: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let text = if let [only] = texts.as_slice() { only.clone() } else { format!("[{}]", texts.join(", ")) };
        let message = format!("{} \"{name}\" is invalid: {text}", resource.kind);
        let mut failure = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(resource, name);
        failure.details["kind"] = resource.kind.into();
        failure.details["causes"] = causes.iter().map(Cause::to_value).collect();
        failure
    }

    /// A server-side apply without the name of its field manager.
    pub(super) fn missing_field_manager(cause: Cause) -> Self {
        let message = format!("PatchOptions.meta.k8s.io \"\" is invalid: {}: {}", cause.field, cause.message);
        let mut failure = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message);
        failure.details = json!({ "group": "meta.k8s.io", "kind": "PatchOptions", "causes": [cause.to_value()] });
        failure
    }

    /// A patch that cannot be applied to the current object.
    pub(super) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
    }

    pub(super) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    pub(super) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message)
    }

    pub(super) fn namespace_terminating(resource: &Resource, name: &str, namespace: &str) -> Self {
        let message = format!(
            "{} \"{name}\" is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
            resource.qualified()
        );
        let mut failure = Self::forbidden(message).about(resource, name);
        let message = format!("namespace {namespace} is being terminated");
        failure.details["causes"] =
            json!([{ "reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace" }]);
        failure
    }

    /// 410: the requested history has been dropped; the client has to list again.
    pub(super) fn expired(message: impl Into<String>) -> Self {
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 504: a version in the future. The real server waits for it for a short time before it answers.
    pub(super) fn version_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let mut failure = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        failure.details = json!({ "retryAfterSeconds": 1,
            "causes": [{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }] });
        failure
    }

    pub(super) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    pub(super) fn unsupported_media_type(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// The kubelet's own refusal, passed on.
    pub(super) fn from_kubelet(pod: &str, code: StatusCode, message: String) -> Self {
        let reason = if code == StatusCode::NOT_FOUND { "NotFound" } else { "InternalError" };
        let mut failure = Self::new(code, reason, message);
        failure.details = json!({ "name": pod, "kind": "pods/log" });
        failure
    }

    pub(super) fn to_value(&self) -> Value {
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
            "reason": self.reason, "details": self.details, "code": self.code.as_u16() })
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.code, Json(self.to_value())).into_response()
    }
}

impl Cause {
    fn new(reason: &'static str, field: impl Into<String>, message: String) -> Self {
        Self { reason, field: field.into(), message }
    }

    pub(super) fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = if detail.is_empty() { "Required value".into() } else { format!("Required value: {detail}") };
        Self::new("FieldValueRequired", field, message)
    }

    pub(super) fn invalid(field: impl Into<String>, value: &str, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {}: {detail}", Value::from(value)))
    }

    pub(super) fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {detail}"))
    }

    pub(super) fn not_found(field: impl Into<String>, value: &str) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {}", Value::from(value)))
    }

    pub(super) fn duplicate(field: impl Into<String>, value: &str) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {}", Value::from(value)))
    }

    pub(super) fn too_long(field: impl Into<String>, limit: usize) -> Self {
        Self::new("FieldValueTooLong", field, format!("Too long: may not be more than {limit} bytes"))
    }

    pub(super) fn not_supported(field: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|word| format!("\"{word}\"")).collect();
        let message = format!("Unsupported value: {}: supported values: {}", Value::from(value), supported.join(", "));
        Self::new("FieldValueNotSupported", field, message)
    }

    fn to_value(&self) -> Value {
        json!({ "reason": self.reason, "message": self.message, "field": self.field })
    }
}
