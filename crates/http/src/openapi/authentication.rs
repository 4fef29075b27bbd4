//! What authentication adds to the description of operations: the scheme, and the responses to callers who are unknown, may not do
//! it, or do it too often. A gateway without an access file gives none of them.

use utoipa::{
    Modify,
    openapi::{
        Components, Content, OpenApi, Ref, RefOr, Response,
        path::Operation,
        security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
    },
};

use super::operations::operations;

const SCHEME: &str = "bearer";
/// Reads that need more than to be known; writes need it anyway.
const FOR_OPERATORS: [&str; 5] = ["listTokens", "readAudit", "listWebhooks", "getWebhook", "listWebhookDeliveries"];

/// Adds the security scheme and these responses.
pub(super) struct Authentication<'a> {
    /// The templates of paths without credentials.
    pub(super) open: Vec<&'a str>,
}

impl Modify for Authentication<'_> {
    fn modify(&self, document: &mut OpenApi) {
        let mut http = Http::new(HttpAuthScheme::Bearer);
        http.description = Some("An API key, or a token of a configured provider".to_owned());
        let components = document.components.get_or_insert_with(Components::new);
        components.add_security_scheme(SCHEME, SecurityScheme::Http(http));
        let scheme = SecurityRequirement::new(SCHEME, Vec::<String>::new());
        // Without an access file, no credentials are needed.
        document.security = Some(vec![scheme, SecurityRequirement::default()]);
        for (path, item) in &mut document.paths.paths {
            let writes = [&item.post, &item.put, &item.patch, &item.delete]
                .map(|operation| operation.as_ref().map(id).unwrap_or_default());
            for operation in operations(item) {
                let id = id(operation);
                if self.open.contains(&path.as_str()) {
                    operation.security = Some(Vec::new());
                    continue;
                }
                add(operation, "401", "The request has no credentials, or invalid ones");
                if writes.contains(&id) || FOR_OPERATORS.contains(&id.as_str()) {
                    add(operation, "403", "The caller's roles do not allow this");
                }
                // Kubeflow's operator gets 503 instead.
                if !has_tag(operation, "Kubeflow") {
                    add(operation, "429", "The caller exceeds a limit: try again after `Retry-After` seconds");
                }
            }
        }
    }
}

fn id(operation: &Operation) -> String {
    operation.operation_id.clone().unwrap_or_default()
}

fn has_tag(operation: &Operation, name: &str) -> bool {
    operation.tags.iter().flatten().any(|tag| tag == name)
}

/// Adds a response that the operation itself doesn't describe.
fn add(operation: &mut Operation, status: &str, description: &str) {
    let (media_type, schema) = match operation {
        _ if has_tag(operation, "Spark") => ("application/json", "ErrorResponse"),
        _ if has_tag(operation, "Kubeflow") => ("application/json", "KubeflowError"),
        _ => ("application/problem+json", "Problem"),
    };
    operation.responses.responses.entry(status.to_owned()).or_insert_with(|| {
        let mut response = Response::new(description);
        response.content.insert(media_type.to_owned(), Content::new(Some(Ref::from_schema_name(schema))).into());
        RefOr::T(response)
    });
}
