//! The audit: who did what to which submission. A change writes its entry in its own statement, so that neither exists without
//! the other. The gateway only inserts entries and reads them; the owner of the tables may delete old ones.

use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sqlx::{Postgres, QueryBuilder, types::Json};

use super::{Error, Scoped, Store, error::within};
use sparkgate_submission::SubmissionId;

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

/// The entries to return. All criteria have to match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub submission: Option<String>,
    pub tenant: Option<String>,
}

/// Receives the entries that a store writes.
pub trait AuditLog: fmt::Debug + Send + Sync {
    /// Receives an entry, after the statement that wrote it has committed. Must not block.
    fn append(&self, entry: AuditEntry);
}

/// The entries that one statement has written; `None` if they aren't needed.
pub(crate) type Written = Option<Json<Vec<AuditEntry>>>;

const COLUMNS: &str = "id, at, principal, address, request_id, action, tenant, submission_id, verdict, detail";

/// A column with the entries that the same statement writes.
const WRITTEN: &str = ", (SELECT jsonb_agg(audited ORDER BY id) FROM audited) AS written";
const UNWRITTEN: &str = ", NULL::jsonb AS written";

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
    query
        .push_bind(action)
        .push(format_args!(", tenant, id, verdict, detail FROM ({from}) AS entries RETURNING {COLUMNS})"));
}

impl Store {
    /// Returns the same store, which passes its entries of the audit on.
    #[must_use]
    pub fn with_audit_log(self, log: std::sync::Arc<dyn AuditLog>) -> Self {
        Self { audit_log: Some(log), ..self }
    }

    /// Returns a column for a statement with [`push_entries`]: the entries, if they are needed.
    pub(crate) fn written(&self, actor: Option<&Actor>) -> &'static str {
        if actor.is_some() && self.audit_log.is_some() { WRITTEN } else { UNWRITTEN }
    }

    /// Passes on the entries of a statement that has committed.
    pub(crate) fn pass_on(&self, written: Written) {
        if let (Some(log), Some(Json(entries))) = (&self.audit_log, written) {
            entries.into_iter().for_each(|entry| log.append(entry));
        }
    }
}

impl Store {
    /// Writes an entry for an action that changes no row, or that was denied: about a tenant, and one of its submissions.
    pub async fn write_audit(
        &self,
        actor: &Actor,
        action: &str,
        (tenant, submission): (Option<&str>, Option<&SubmissionId>),
        allowed: bool,
        detail: &str,
    ) -> Result<(), Error> {
        let what = "writing the audit";
        let mut connection = self.connection(what).await?;
        let statement = format!(
            "INSERT INTO audit (principal, address, request_id, action, tenant, submission_id, verdict, detail)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING {COLUMNS}"
        );
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(&actor.principal)
            .bind(&actor.address)
            .bind(&actor.request_id)
            .bind(action)
            .bind(tenant)
            .bind(submission.map(SubmissionId::as_str))
            .bind(if allowed { "allowed" } else { "denied" })
            .bind(detail)
            .fetch_one(&mut *connection);
        let entry = within(what, statement).await?;
        self.pass_on(Some(Json(vec![entry])));
        Ok(())
    }
}

impl Store {
    /// Deletes those of the `limit` oldest entries that are older than `age` by the clocks of the database and of this machine, one of
    /// which may be ahead, and returns how many. The role of a gateway may not
    /// delete entries: it takes the owner of the tables.
    pub async fn prune_audit(&self, age: Duration, limit: u32) -> Result<u64, Error> {
        let statement = sqlx::query(
            "WITH oldest AS (SELECT id, at FROM audit ORDER BY id LIMIT $2)
             DELETE FROM audit a USING oldest o WHERE a.id = o.id AND o.at < least(now(), $3) - make_interval(secs => $1)",
        )
        .bind(age.as_secs_f64())
        .bind(i64::from(limit))
        .bind(Utc::now())
        .execute(&self.patient);
        Ok(within("deleting old entries of the audit", statement).await?.rows_affected())
    }
}

impl Scoped {
    /// Returns up to `limit` entries after the position `after`, in order. Entries of no tenant are in the scope of the
    /// installation only.
    pub async fn audit(&self, filter: &AuditFilter, after: i64, limit: u32) -> Result<Vec<AuditEntry>, Error> {
        let action = "reading the audit";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::new(format!("SELECT {COLUMNS} FROM audit a WHERE id > "));
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
