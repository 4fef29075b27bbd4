//! The audit, for those who may read it. Each change writes its own entry.

use super::{error::Error, session::Session};
use crate::{
    access::Action,
    store::{AuditEntry, AuditFilter, Store},
};

/// Reads the audit.
#[derive(Debug)]
pub struct Audit {
    store: Store,
}

impl Audit {
    pub(super) fn new(store: Store) -> Self {
        Self { store }
    }

    /// Returns up to `limit` entries after the position `after` of the tenants whose audit the caller may read.
    ///
    /// # Errors
    /// [`Error::Denied`] if there is no such tenant.
    pub async fn entries(
        &self,
        caller: &Session,
        filter: &AuditFilter,
        after: i64,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, Error> {
        caller.require(Action::ReadAudit)?;
        Ok(self.store.scoped(&caller.audited()).audit(filter, after, limit).await?)
    }
}
