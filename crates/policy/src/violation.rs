//! The results of compiling a policy and of judging a driver.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

/// A rule that a driver breaks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Violation {
    /// The name of the rule, as in the policy document; an operator's own rule is `cel:<name>`.
    pub rule: String,
    /// The value that breaks it: `Pod/spec/containers/0/image`, or `sparkProperties["spark.plugins"]`.
    pub path: String,
    pub message: String,
    /// What the value comes from, if that is known: a property, or a field of a pod template.
    pub cause: Option<String>,
}

impl Display for Violation {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.rule, self.path, self.message)?;
        match &self.cause {
            Some(cause) if *cause != self.path => write!(f, " (from {cause})"),
            _ => Ok(()),
        }
    }
}

/// A fault of a policy document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy.{path}: {message}")]
pub struct Fault {
    /// The field of the document, such as `images[2]`.
    pub path: String,
    pub message: String,
}

impl Fault {
    pub(crate) fn new(path: &str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), message: message.into() }
    }
}
