//! The audit: who did what to which submission. A change writes its entry in its own statement, so that neither exists without
//! the other. The gateway only inserts entries and reads them.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use super::{Error, Scoped, Store, error::within};

/// Who requested a change, and where the request came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The subject of the principal, such as `corp:alice`.
    pub principal: String,
    /// The address of the client.
    pub address: Option<String>,
    pub request_id: String,
}

/// One entry of the audit.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
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

/// The entries to return. All criteria have to match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub submission: Option<String>,
    pub tenant: Option<String>,
}

/// Appends a part of a `WITH` list that writes an entry for each row of `from`, which has the columns `tenant`, `id` and
/// `verdict`. Appends nothing without an actor.
pub(crate) fn push_entries(query: &mut QueryBuilder<Postgres>, actor: Option<&Actor>, action: &str, from: &str) {
    let Some(Actor { principal, address, request_id }) = actor else { return };
    query.push(
        ", audited AS (
             INSERT INTO audit (principal, address, request_id, action, tenant, submission_id, verdict, detail)
             SELECT ",
    );
    query.push_bind(principal).push(", ").push_bind(address).push(", ").push_bind(request_id).push(", ");
    query.push_bind(action).push(format_args!(", tenant, id, verdict, detail FROM ({from}) AS audited)"));
}

impl Store {
    /// Writes an entry for an action that changes no submission, or that was denied.
    pub async fn write_audit(
        &self,
        actor: &Actor,
        action: &str,
        tenant: Option<&str>,
        allowed: bool,
        detail: &str,
    ) -> Result<(), Error> {
        let what = "writing the audit";
        let mut connection = self.connection(what).await?;
        let statement = sqlx::query(
            "INSERT INTO audit (principal, address, request_id, action, tenant, verdict, detail)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(&actor.principal)
        .bind(&actor.address)
        .bind(&actor.request_id)
        .bind(action)
        .bind(tenant)
        .bind(if allowed { "allowed" } else { "denied" })
        .bind(detail)
        .execute(&mut *connection);
        within(what, statement).await?;
        Ok(())
    }
}

impl Scoped {
    /// Returns up to `limit` entries after the position `after`, in order. Entries of no tenant are in the scope of the
    /// installation only.
    pub async fn audit(&self, filter: &AuditFilter, after: i64, limit: u32) -> Result<Vec<AuditEntry>, Error> {
        let action = "reading the audit";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::new(
            "SELECT id, at, principal, address, request_id, action, tenant, submission_id, verdict, detail
             FROM audit a WHERE id > ",
        );
        query.push_bind(after).push(" AND ");
        self.scope.push_condition(&mut query, "a");
        if let Some(id) = &filter.submission {
            query.push(" AND submission_id = ").push_bind(id);
        }
        if let Some(tenant) = &filter.tenant {
            query.push(" AND tenant = ").push_bind(tenant);
        }
        query.push(" ORDER BY id LIMIT ").push_bind(i64::from(limit));
        within(action, query.build_query_as().fetch_all(&mut *connection)).await
    }
}
