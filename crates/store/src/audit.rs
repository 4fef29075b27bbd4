//! The audit: who did what to which submission. A change writes its entry in its own statement, so that neither exists without
//! the other. The gateway only inserts entries and reads them; the owner of the tables may delete old ones.

use std::{sync::Arc, time::Duration};

use chrono::Utc;
use sqlx::{Postgres, QueryBuilder, types::Json};

use super::{
    actor::Actor,
    audit_entry::{AuditEntry, AuditLog},
    error::{Error, within},
    scoped::Scoped,
    store::Store,
};
use sparkgate_submission::SubmissionId;

/// What the path of a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditSubject<'a> {
    Submission(&'a str),
    /// A submission by its number, which came over Livy's API.
    Batch(i64),
    Key(&'a str),
    Webhook(&'a str),
}

/// The longest detail of an entry, in bytes.
const LONGEST_DETAIL: usize = 2048;

/// The entries to return. All criteria have to match.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    pub submission: Option<String>,
    pub tenant: Option<String>,
}

/// The entries that one statement has written, without those that aren't needed; `None` if it has written none.
pub(crate) type Written = Option<Json<Vec<AuditEntry>>>;

const COLUMNS: &str = "id, at, principal, address, request_id, action, tenant, submission_id, verdict, detail";

/// A column with the entries that the same statement writes.
const WRITTEN: &str = ", (SELECT jsonb_agg(audited ORDER BY id) FROM audited) AS written";
const WHETHER_WRITTEN: &str = ", (SELECT '[]'::jsonb WHERE EXISTS (SELECT FROM audited)) AS written";
const UNWRITTEN: &str = ", NULL::jsonb AS written";

/// Appends a part of a `WITH` list that writes an entry for each row of `from`, which has the columns `tenant`, `id` and
/// `verdict`. Appends nothing without an actor.
pub(crate) fn push_entries(query: &mut QueryBuilder<Postgres>, actor: Option<&Actor>, action: &str, from: &str) {
    let Some(Actor { principal, address, request_id, .. }) = actor else { return };
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
    pub fn with_audit_log(self, log: Arc<dyn AuditLog>) -> Self {
        Self { audit_log: Some(log), ..self }
    }

    /// Returns a column for a statement with [`push_entries`]: the entries, if they are needed.
    pub(crate) fn written(&self, actor: Option<&Actor>) -> &'static str {
        match (actor, &self.audit_log) {
            (None, _) => UNWRITTEN,
            (Some(_), None) => WHETHER_WRITTEN,
            (Some(_), Some(_)) => WRITTEN,
        }
    }

    /// Passes on the entries of a statement that has committed, and notes whether there are any.
    pub(crate) fn pass_on_entries(&self, actor: Option<&Actor>, written: Written) {
        let Some(Json(entries)) = written else { return };
        if let Some(actor) = actor {
            actor.note.settle();
        }
        if let Some(log) = &self.audit_log {
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
            .bind(&detail[..detail.floor_char_boundary(LONGEST_DETAIL)])
            .fetch_one(&mut *connection);
        let entry = within(what, statement).await?;
        self.pass_on_entries(Some(actor), Some(Json(vec![entry])));
        Ok(())
    }

    /// Returns the tenant of what a path names, and the id if that is a submission, whatever the caller may see.
    pub async fn audited(&self, subject: AuditSubject<'_>) -> Result<Option<(Option<String>, Option<String>)>, Error> {
        let action = "reading the tenant of an entry of the audit";
        let (statement, id, number) = match subject {
            AuditSubject::Submission(id) => ("SELECT tenant, id FROM submissions WHERE id = $1", id, 0),
            AuditSubject::Batch(number) => {
                ("SELECT tenant, id FROM submissions WHERE number = $2 AND wire = 'livy' AND $1 = ''", "", number)
            }
            AuditSubject::Key(id) => ("SELECT tenant, NULL::text FROM api_keys WHERE id = $1", id, 0),
            AuditSubject::Webhook(id) => {
                ("SELECT nullif(tenant, ''), submission_id FROM webhooks WHERE id = $1", id, 0)
            }
        };
        let mut connection = self.connection(action).await?;
        let query = sqlx::query_as(statement).bind(id);
        let query = if number == 0 { query } else { query.bind(number) };
        within(action, query.fetch_optional(&mut *connection)).await
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
