//! The entries of the audit, and where they go besides the database.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::Deserialize;

/// One entry of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, sqlx::FromRow)]
pub struct AuditEntry {
    /// The position in the order of entries.
    pub id: i64,
    pub at: DateTime<Utc>,
    pub principal: String,
    pub address: Option<String>,
    pub request_id: Option<String>,
    pub action: String,
    pub tenant: Option<String>,
    pub submission_id: Option<String>,
    /// `allowed` or `denied`.
    pub verdict: String,
    pub detail: Option<String>,
}

/// Receives the entries that a store writes.
pub trait AuditLog: fmt::Debug + Send + Sync {
    /// Receives an entry, after the statement that wrote it has committed. Must not block.
    fn append(&self, entry: AuditEntry);
}
