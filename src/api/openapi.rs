//! The `OpenAPI` description, generated from the handlers.

use utoipa::{Modify, OpenApi};
use utoipa_axum::{router::OpenApiRouter, routes};
use utoipa_swagger_ui::{Config, SwaggerUi};

mod fallback;

use fallback::Fallback;

use super::{AppState, health, spark, v1};

/// What the routes themselves don't describe. Spark's protocol has no routes: it answers every path.
#[derive(OpenApi)]
#[openapi(
    info(title = "Sparkgate", license(name = "Apache License 2.0", identifier = "Apache-2.0")),
    tags(
        (name = "Submissions", description = "Submissions as resources"),
        (name = "Events", description = "State changes of submissions"),
        (name = "Spark", description = "The REST submission protocol of Spark's standalone master"),
        (name = "Probes", description = "Liveness and readiness of the gateway"),
    ),
    paths(
        spark::create::create,
        spark::actions::status,
        spark::actions::kill,
        spark::actions::kill_all,
        spark::actions::clear,
        spark::actions::readyz,
    ),
    components(schemas(v1::ProblemBody))
)]
struct Api;

/// Returns the routes of the probes with their descriptions.
pub(super) fn probes() -> OpenApiRouter<AppState> {
    OpenApiRouter::default().routes(routes!(health::livez)).routes(routes!(health::readyz))
}

/// Returns the document at `/v1/openapi.json` and Swagger UI at `/docs`. All assets of the page are in this binary.
pub(super) fn page() -> SwaggerUi {
    // By default Swagger UI sends the document to a validator on the internet.
    let config = Config::default().validator_url("none").try_it_out_enabled(true).display_request_duration(true);
    SwaggerUi::new("/docs").url("/v1/openapi.json", openapi()).config(config)
}

/// Returns the `OpenAPI` 3.1 document of everything that [`super::router`] serves.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut document = Api::openapi();
    document.merge(v1::routes().into_openapi());
    document.merge(probes().into_openapi());
    Fallback.modify(&mut document);
    document
}

#[cfg(test)]
mod tests {
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
        let committed = include_str!("../../openapi/sparkgate.json");
        assert!(
            current.trim() == committed.trim(),
            "openapi/sparkgate.json is out of date: cargo run -- openapi > openapi/sparkgate.json"
        );
    }
}
