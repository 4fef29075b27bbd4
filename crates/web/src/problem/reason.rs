//! Why a request was refused, for the audit.

use std::{fmt, sync::Arc};

use super::Problem;

/// Why a request was refused, beside the answer that says it. It has no values of the request.
#[derive(Debug, Clone)]
pub struct Reason(Arc<str>);

impl Reason {
    /// Returns the reason of a problem: of an invalid request only its fields, because their reasons may quote values.
    pub fn of(problem: &Problem) -> Self {
        if problem.errors.is_empty() {
            return Self(problem.detail.as_str().into());
        }
        let fields = problem.errors.iter().filter_map(|error| error.pointer.as_deref().or(error.parameter.as_deref()));
        Self(format!("the request is invalid: {}", fields.collect::<Vec<_>>().join(", ")).into())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
