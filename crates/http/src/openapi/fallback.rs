//! Responses to paths below `/v1/submissions` that name no resource. The prefix is shared with Spark's protocol, which
//! answers every path. A segment that begins with `driver-` names a resource; any other is answered as Spark's master
//! does.

use utoipa::{
    Modify,
    openapi::{
        Content, OpenApi, Ref, RefOr, Response,
        schema::{ObjectBuilder, Type},
    },
};

use super::operations::operations;

const DESCRIPTION: &str = "A parameter is invalid (a problem), or the id is malformed (an `ErrorResponse` or an HTML \
                           page of Spark's protocol, which shares these paths)";

/// Adds the responses to paths that name no resource to those that the handlers describe.
pub(super) struct Fallback;

impl Modify for Fallback {
    fn modify(&self, document: &mut OpenApi) {
        for (path, item) in &mut document.paths.paths {
            let is_resource = path.starts_with("/v1/submissions/{id}");
            if !is_resource && !path.ends_with("/{id}") {
                continue;
            }
            for operation in operations(item) {
                let response = operation.responses.responses.entry("400".to_owned());
                let RefOr::T(response) = response.or_insert_with(|| RefOr::T(Response::new(DESCRIPTION))) else {
                    continue;
                };
                if is_resource {
                    DESCRIPTION.clone_into(&mut response.description);
                }
                let problem = is_resource.then_some(("application/problem+json", "Problem"));
                for (media_type, schema) in problem.into_iter().chain([("application/json", "ErrorResponse")]) {
                    let content = || RefOr::T(Content::new(Some(Ref::from_schema_name(schema))));
                    response.content.entry(media_type.to_owned()).or_insert_with(content);
                }
                let page = ObjectBuilder::new().schema_type(Type::String);
                response.content.insert("text/html".to_owned(), RefOr::T(Content::new(Some(page.build()))));
            }
        }
    }
}
