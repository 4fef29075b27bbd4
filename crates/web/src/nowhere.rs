//! Answers to paths and methods that an API doesn't have.

use axum::extract::Request;

use super::problem::{Code, Problem};

/// Returns the problem of a path without a resource.
pub fn nothing_at(path: &str, hint: &str) -> Problem {
    Problem::new(Code::NotFound, format!("There is nothing at {path}. {hint}"))
}

/// Answers a method that a resource doesn't have. The router adds `Allow`.
pub async fn no_such_method(request: Request) -> Problem {
    let detail = format!("{} does not allow {}: see the Allow header.", request.uri().path(), request.method());
    Problem::new(Code::MethodNotAllowed, detail)
}
