//! Why a request can't become a driver.

/// A request that spark-submit would refuse, or that asks for something Sparkgate doesn't offer. It is the client's
/// to mend: HTTP 400, and exit code 1 of `sparkgate render`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Refusal {
    /// The field at fault, such as `appResource` or `sparkProperties["spark.driver.memory"]`.
    pub field: String,
    /// A sentence in Spark's words where Spark has them.
    pub reason: String,
}

impl Refusal {
    pub fn field(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }

    /// A Spark property at fault.
    pub fn property(key: &str, reason: impl Into<String>) -> Self {
        Self::field(Self::property_field(key), reason)
    }

    /// The name of a Spark property as a field of the request.
    pub(crate) fn property_field(key: &str) -> String {
        format!("sparkProperties[\"{key}\"]")
    }
}
