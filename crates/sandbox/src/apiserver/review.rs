//! Reviews of the own access and of the own name: this server has no accounts, so each client may do everything, and has one name.

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// The path of `kubectl auth can-i`.
pub(super) const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// The path of `kubectl auth whoami`.
pub(super) const WHO: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
/// The name of each client.
const USER: &str = "sandbox";
/// Maximum size of a review in bytes.
const LARGEST: usize = 64 << 10;

/// Answers a review: what it asks for is allowed.
pub(super) async fn review(body: Body) -> Response {
    answer(body, json!({ "allowed": true })).await
}

/// Answers who a client is.
pub(super) async fn who(body: Body) -> Response {
    answer(body, json!({ "userInfo": { "username": USER, "groups": ["system:authenticated"] } })).await
}

async fn answer(body: Body, status: Value) -> Response {
    let bytes = to_bytes(body, LARGEST).await.unwrap_or_default();
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(Value::Object(mut review)) => {
            review.insert("status".to_owned(), status);
            (StatusCode::CREATED, Json(review)).into_response()
        }
        _ => (StatusCode::BAD_REQUEST, "the body is not a review\n").into_response(),
    }
}
