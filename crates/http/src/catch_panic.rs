//! Turns a panic of a handler into a 500, so that the connection stays open for other requests.

use std::any::Any;

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    middleware::Next,
    response::Response,
};
use tower::ServiceExt;
use tower_http::catch_panic::{CatchPanic, ResponseForPanic};

use sparkgate_web::{face::AnyFace, request_log::RequestId};

/// Answers 500 with the request's id. The panic hook prints the panic's location and message.
pub(super) async fn catch_panic(
    State(face): State<AnyFace>,
    Extension(id): Extension<RequestId>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path().to_owned();
    let Ok(response) = CatchPanic::custom(next, Answer { path, id, face }).oneshot(request).await;
    response.map(Body::new)
}

#[derive(Clone)]
struct Answer {
    path: String,
    id: RequestId,
    face: AnyFace,
}

impl ResponseForPanic for Answer {
    type ResponseBody = Body;

    fn response_for_panic(&mut self, _: Box<dyn Any + Send>) -> Response {
        tracing::error!("a request handler panicked");
        self.face.broken_off(&self.path, &self.id)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::{Router, http::StatusCode, middleware::from_fn_with_state};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::spark::SparkFace;
    use sparkgate_spark::SparkVersion;
    use sparkgate_web::{face::AnyFace, request_log::logged};

    #[tokio::test]
    async fn panic_is_answered_with_the_request_id_and_without_its_message() {
        let face: AnyFace = Arc::new(SparkFace(SparkVersion::V4_3));
        let router = Router::new()
            .fallback(async || -> StatusCode { panic!("secret") })
            .layer(from_fn_with_state(face, catch_panic));
        let router: Router = logged(router);
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
