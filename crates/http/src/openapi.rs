//! The `OpenAPI` description, generated from the handlers.

use axum::{
    Router,
    http::{HeaderValue, header},
    middleware::map_response,
    response::Response,
};
use utoipa::{Modify, OpenApi};
use utoipa_swagger_ui::{Config, SwaggerUi};

mod authentication;
mod fallback;
mod operations;

use authentication::Authentication;
use fallback::Fallback;

use super::{health, kubeflow, spark, v1};
use sparkgate_web::problem::ProblemBody;

/// What the routes themselves don't describe.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Sparkgate",
        description = "An HTTP gateway for Apache Spark on Kubernetes",
        license(name = "Apache License 2.0", identifier = "Apache-2.0")
    ),
    tags(
        (name = "Submissions", description = "Submissions as resources"),
        (name = "Queues", description = "Who gets the cluster next: queues, and holds of submissions"),
        (name = "Sessions", description = "Sessions of Spark Connect"),
        (name = "Events", description = "State changes of submissions"),
        (name = "Spark", description = "The REST submission protocol of Spark's standalone master"),
        (name = "Kubeflow", description = "The submitter of Kubeflow's Spark operator"),
        (name = "Webhooks", description = "State changes that are sent to a URL"),
        (name = "Usage", description = "What submissions used, and what it cost"),
        (name = "Access", description = "Callers, API keys and the audit"),
        (name = "Probes", description = "Liveness and readiness of the gateway"),
    ),
    components(schemas(ProblemBody))
)]
struct Api;

/// What Swagger UI needs: its own scripts and requests to this gateway; styles in attributes, and pictures in its style sheet.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Returns the document at `/v1/openapi.json` and Swagger UI at `/docs`. All assets of the page are in this binary.
pub(super) fn page<S: Clone + Send + Sync + 'static>() -> Router<S> {
    // By default Swagger UI sends the document to a validator on the internet.
    let config = Config::default().validator_url("none").try_it_out_enabled(true).display_request_duration(true);
    let page = Router::from(SwaggerUi::new("/docs").url("/v1/openapi.json", openapi()).config(config));
    page.layer(map_response(async |mut response: Response| {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        response
    }))
}

/// Returns the `OpenAPI` 3.1 document of everything that [`super::router()`] serves.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut document = Api::openapi();
    let routes = v1::routes().merge(spark::routes()).merge(kubeflow::routes()).merge(health::routes());
    document.merge(routes.document());
    Fallback.modify(&mut document);
    Authentication { open: routes.open_templates().collect() }.modify(&mut document);
    document
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, extract::Request};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    /// Returns the policy and the body.
    async fn get(path: &str) -> (String, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = page::<()>().oneshot(request).await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{path}");
        let policy = response.headers()[header::CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (policy, String::from_utf8_lossy(&body).into_owned())
    }

    /// A new release of Swagger UI may load something else.
    #[tokio::test]
    async fn all_that_the_page_loads_is_of_this_gateway_and_allowed_by_its_policy() {
        let (policy, page) = get("/docs/").await;
        for needed in
            ["script-src 'self';", "style-src 'self' 'unsafe-inline';", "connect-src 'self';", "img-src 'self' data:;"]
        {
            assert!(policy.contains(needed), "{policy}");
        }
        let tags: Vec<&str> =
            page.split('<').filter(|tag| tag.starts_with("script") || tag.starts_with("link")).collect();
        assert!(tags.len() >= 5, "{page}");
        for tag in tags {
            let quoted = tag
                .split_once("src=\"")
                .or_else(|| tag.split_once("href=\""))
                .unwrap_or_else(|| panic!("inline: {tag}"));
            let (file, _) = quoted.1.split_once('"').unwrap();
            assert!(!file.contains("//"), "{tag}");
            get(&format!("/docs/{}", file.trim_start_matches("./"))).await;
            let text = tag.split_once('>').map_or("", |(_, text)| text.trim());
            assert!(text.is_empty(), "inline: {tag}");
        }
        for inline in [" onload=", " onclick=", "<style", "javascript:"] {
            assert!(!page.contains(inline), "{page}");
        }
        assert!(get("/docs/swagger-initializer.js").await.1.contains("/v1/openapi.json"));
    }

    #[test]
    fn every_operation_id_is_unique() {
        let document = serde_json::to_value(super::openapi()).unwrap();
        let operations =
            document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
        let mut ids: Vec<&str> = operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
        ids.sort_unstable();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "{ids:?}");
    }

    #[test]
    fn the_committed_document_is_current() {
        let current = super::openapi().to_pretty_json().unwrap();
        let committed = include_str!("../../../openapi/sparkgate.json");
        assert!(
            current.trim() == committed.trim(),
            "openapi/sparkgate.json is out of date: cargo run -- openapi > openapi/sparkgate.json"
        );
    }
}
