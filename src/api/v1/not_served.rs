//! Paths and methods that lead nowhere.

use axum::{extract::Request, http::Uri};

use super::problem::{Code, Problem};

pub(super) async fn path(uri: Uri) -> Problem {
    Problem::new(Code::NotFound, format!("There is nothing at {}. See /v1/openapi.json for what there is.", uri.path()))
}

/// The router adds `Allow`.
pub(super) async fn method(request: Request) -> Problem {
    let detail = format!("{} is not a method of {}: see the Allow header.", request.method(), request.uri().path());
    Problem::new(Code::MethodNotAllowed, detail)
}
