//! Headers for browsers: pages and errors are shown in no frame of another site, load nothing from elsewhere, and are what their
//! content type says.

use axum::{
    http::{HeaderName, HeaderValue, header},
    response::Response,
};

/// Allows nothing: for documents that need neither scripts nor styles.
const NOTHING: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const HEADERS: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, NOTHING),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
];

/// Adds the headers to a page or an error. A page's own policy stays.
pub async fn add(mut response: Response) -> Response {
    let content_type = response.headers().get(header::CONTENT_TYPE);
    let is_page = content_type.is_some_and(|value| value.as_bytes().starts_with(b"text/html"));
    let status = response.status();
    if is_page || status.is_client_error() || status.is_server_error() {
        for (name, value) in HEADERS {
            response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::{
        Router,
        body::Body,
        extract::Request,
        http::StatusCode,
        middleware::map_response,
        response::{Html, IntoResponse},
        routing::get,
    };
    use tower::ServiceExt;

    use super::*;

    async fn headers(path: &str) -> Vec<Option<String>> {
        let own = [(header::CONTENT_SECURITY_POLICY, "default-src 'self'")];
        let router = Router::new()
            .route("/page", get(async || (own, Html("")).into_response()))
            .route("/error", get(async || StatusCode::INTERNAL_SERVER_ERROR))
            .route("/document", get(async || "{}"))
            .layer(map_response(add));
        let response = router.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
        let value = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        HEADERS.iter().map(|(name, _)| value(name)).collect()
    }

    #[tokio::test]
    async fn pages_and_errors_get_the_headers_and_a_policy_of_their_own_stays() {
        let expected = |policy: &str| {
            let values = [policy, "DENY", "nosniff", "no-referrer"];
            values.map(|value| Some(value.to_owned())).to_vec()
        };
        assert_eq!(headers("/page").await, expected("default-src 'self'"));
        for path in ["/error", "/unknown"] {
            assert_eq!(headers(path).await, expected(NOTHING), "{path}");
        }
        assert_eq!(headers("/document").await, [None, None, None, None]);
    }
}
