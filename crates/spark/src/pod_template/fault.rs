//! An error where a template doesn't fit Kubernetes' types.

use std::fmt;

/// An error with the path of its field.
#[derive(Debug)]
pub(super) struct Fault {
    /// The segments of the path, from the invalid field outwards.
    path: Vec<String>,
    reason: String,
}

impl Fault {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self { path: Vec::new(), reason: reason.into() }
    }

    /// Adds the enclosing segment to the path.
    pub(super) fn within(mut self, segment: String) -> Self {
        self.path.push(segment);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path: String = self.path.iter().rev().map(String::as_str).collect();
        match path.trim_start_matches('.') {
            "" => write!(f, "{}", self.reason),
            path => write!(f, "{path}: {}", self.reason),
        }
    }
}

impl std::error::Error for Fault {}

impl serde::de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}
