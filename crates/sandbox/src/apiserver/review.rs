//! Access reviews: this server has no accounts, so each client may do everything.

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// The path of `kubectl auth can-i`.
pub(super) const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// Maximum size of a review in bytes.
const LARGEST: usize = 64 << 10;

/// Answers a review: what it asks for is allowed.
pub(super) async fn review(body: Body) -> Response {
    let bytes = to_bytes(body, LARGEST).await.unwrap_or_default();
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(mut review)) => {
            review.insert("status".to_owned(), json!({ "allowed": true }));
            (StatusCode::CREATED, Json(review)).into_response()
        }
        _ => (StatusCode::BAD_REQUEST, "the body is not a SelfSubjectAccessReview\n").into_response(),
    }
}
