//! A router inside another one.

use std::convert::Infallible;

use axum::{Router, extract::Request, http::Method, response::Response};
use tower::ServiceExt;

use super::compression::without_length_of_nothing;

/// Lets a router answer a request that another one has got.
pub async fn answer(router: &Router, request: Request) -> Response {
    let is_head = request.method() == Method::HEAD;
    let answer: Result<Response, Infallible> = router.clone().oneshot(request).await;
    let Ok(response) = answer;
    if is_head { without_length_of_nothing(response) } else { response }
}
