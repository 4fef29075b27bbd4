//! Turns a panic of a handler into a 500, so that the connection stays open for other requests.

use std::panic::AssertUnwindSafe;

use axum::{
    Extension,
    extract::{Request, State},
    http::StatusCode,
    middleware::Next,
    response::Response,
};
use futures::FutureExt;

use super::{request_log::RequestId, spark, v1};
use crate::spark::SparkVersion;

/// Answers 500 with the request's id. The panic hook prints the panic's location and message.
pub(super) async fn catch_panic(
    State(version): State<SparkVersion>,
    Extension(id): Extension<RequestId>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            tracing::error!("a request handler panicked");
            if v1::serves(&path) {
                return v1::internal_error(path, &id);
            }
            let message = spark::internal_error(&id);
            spark::error(StatusCode::INTERNAL_SERVER_ERROR, message, version)
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::{
        Router,
        body::Body,
        middleware::{from_fn, from_fn_with_state},
    };
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::api::request_log::request_log;

    #[tokio::test]
    async fn panic_is_answered_with_the_request_id_and_without_its_message() {
        let router: Router = Router::new()
            .fallback(async || -> StatusCode { panic!("secret") })
            .layer(from_fn_with_state(SparkVersion::V4_3, catch_panic))
            .layer(from_fn(request_log));
        let request = Request::builder().header("x-request-id", "r-1").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!(
            (response.status(), &response.headers()["x-request-id"]),
            (500.try_into().unwrap(), &"r-1".parse().unwrap())
        );
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        assert!(body.contains("Internal server error") && body.contains("r-1") && !body.contains("secret"), "{body}");
    }
}
