//! The reason why no driver can be built from a request.

/// A request that spark-submit would refuse, or that asks for something that Sparkgate doesn't support. It is a client error:
/// HTTP 400, and exit code 1 of `sparkgate render`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Refusal {
    /// The invalid field, such as `appResource` or `sparkProperties["spark.driver.memory"]`.
    pub field: String,
    /// A sentence, which is Spark's message where Spark has one.
    pub reason: String,
}

impl Refusal {
    pub fn field(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }

    /// Creates a refusal of a Spark property.
    pub fn property(key: &str, reason: impl Into<String>) -> Self {
        Self::field(Self::property_field(key), reason)
    }

    /// Returns the name of a Spark property as a field of the request.
    pub fn property_field(key: &str) -> String {
        format!("sparkProperties[\"{key}\"]")
    }
}
