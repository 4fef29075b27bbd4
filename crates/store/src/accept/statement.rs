//! The type of the statement that accepts a group of submissions.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, postgres::PgArguments, query::QueryAs, types::Json};

use crate::audit_entry::AuditEntry;

/// Its id, a preallocated number, the time of that allocation, and the entry of the audit.
pub(super) type Inserted = (String, Option<i64>, DateTime<Utc>, Option<Json<AuditEntry>>);

pub(super) type Statement<'a> = QueryAs<'a, Postgres, Inserted, PgArguments>;
