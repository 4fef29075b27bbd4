//! api
#[derive(Default)]
pub struct HttpSettings {
    pub max_request_body_bytes: usize,
}
pub fn router(_: crate::service::Gateway, _: HttpSettings) -> axum::Router {
    axum::Router::new()
}
pub fn openapi() -> utoipa::openapi::OpenApi {
    utoipa::openapi::OpenApi::default()
}
