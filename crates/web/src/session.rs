//! The caller of a request, for its handler.

use axum::{extract::FromRequestParts, http::request::Parts};

use super::problem::Problem;
use sparkgate_service::Session;

/// The caller, which authentication has put into the request.
pub struct Caller(pub Session);

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = parts.extensions.get::<Session>().cloned().map(Self);
        caller.ok_or_else(|| Problem::internal("the request passed no authentication".to_owned()))
    }
}
