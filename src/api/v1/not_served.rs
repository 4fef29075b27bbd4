//! Responses to unknown paths and methods.

use axum::{extract::Request, http::Uri};

use super::problem::{Code, Problem};

pub(super) async fn path(uri: Uri) -> Problem {
    Problem::new(Code::NotFound, format!("There is nothing at {}. See /v1/openapi.json for all paths.", uri.path()))
}

/// The router adds `Allow`.
pub(super) async fn method(request: Request) -> Problem {
    let detail = format!("{} does not allow {}: see the Allow header.", request.uri().path(), request.method());
    Problem::new(Code::MethodNotAllowed, detail)
}
