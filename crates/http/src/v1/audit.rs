//! The audit.

use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use utoipa::{IntoParams, ToSchema};

use super::reply::Reply;
use sparkgate_service::{AuditEntry, AuditFilter};
use sparkgate_web::{
    problem::{Problem, responses::Problems},
    query::{Query, limit, parsed},
    session::Caller,
    state::AppState,
};

const LIMIT: u32 = 100;

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AuditQuery {
    /// Only entries with a higher `id`: `next` of the previous page
    #[serde(deserialize_with = "position")]
    #[param(value_type = Option<i64>, minimum = 0)]
    after: i64,
    /// Page size; 100 by default
    #[serde(deserialize_with = "limit::<1000, _>")]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Only entries of this submission
    submission: Option<String>,
    /// Only entries of this tenant
    tenant: Option<String>,
}

/// Entries of the audit, the oldest first.
#[derive(Serialize, ToSchema)]
pub(super) struct AuditList {
    entries: Vec<Entry>,
    /// The `after` of the next page, which may be empty yet.
    next: i64,
}

/// Who did what, when and from where.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entry {
    id: i64,
    at: DateTime<Utc>,
    /// The principal.
    #[schema(example = "corp:alice")]
    subject: String,
    /// The name of the API key, if it is one. Not in the log of the audit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "airflow")]
    subject_name: Option<String>,
    /// The address of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "10.0.0.7")]
    address: Option<String>,
    /// `submit`, `kill`, `killall`, `clear`, `create-key`, `revoke-key`, `create-webhook`, `rotate-webhook`, `replay-webhook`,
    /// `delete-webhook`, `hold`, `release`, `requeue`, `change-places`, `pause-queue`, `drain-queue`, `resume-queue`, `change-queue`,
    /// `kill-in-spark-ui`, `connect`, `sign-in` or `sign-out`.
    #[schema(example = "kill")]
    action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "analytics")]
    tenant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "driver-20260102030405-0000")]
    submission: Option<String>,
    /// `allowed` or `denied`.
    #[schema(example = "allowed")]
    verdict: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// The id of the request in the gateway's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
}

impl From<AuditEntry> for Entry {
    fn from(entry: AuditEntry) -> Self {
        Self {
            id: entry.id,
            at: entry.at,
            subject: entry.principal,
            subject_name: None,
            address: entry.address,
            action: entry.action,
            tenant: entry.tenant,
            submission: entry.submission_id,
            verdict: entry.verdict,
            detail: entry.detail,
            request_id: entry.request_id,
        }
    }
}

/// Read the audit
///
/// Operators read that of their tenants, admins all of it. Without an access file nothing is written to it.
#[utoipa::path(
    get, path = "/v1/audit", tag = "Access", operation_id = "readAudit", params(AuditQuery),
    responses(Problems, (status = 200, description = "One page", body = AuditList))
)]
pub(super) async fn audit(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Query(query): Query<AuditQuery>,
) -> Result<Reply<AuditList>, Problem> {
    let filter = AuditFilter { submission: query.submission, tenant: query.tenant };
    let limit = query.limit.unwrap_or(LIMIT);
    let entries = state.service.audit.entries(&caller, &filter, query.after, limit).await?;
    let next = entries.last().map_or(query.after, |entry| entry.id);
    let names = state.service.api_keys.names(entries.iter().map(|entry| entry.principal.as_str())).await;
    let named = |entry| {
        let entry = Entry::from(entry);
        Entry { subject_name: names.of(&entry.subject).map(str::to_owned), ..entry }
    };
    Ok(Reply::ok(AuditList { entries: entries.into_iter().map(named).collect(), next }))
}

/// Returns an entry as a line of JSON with the same fields as in a response.
pub fn audit_line(entry: AuditEntry) -> String {
    // Serializing strings and numbers can't fail, and the JSON has no line breaks.
    let mut line = serde_json::to_string(&Entry::from(entry)).unwrap_or_default();
    line.push('\n');
    line
}

fn position<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let position = parsed(deserializer, "the `next` of an earlier page")?;
    if position < 0 {
        return Err(D::Error::custom(format!("{position} is below 0")));
    }
    Ok(position)
}
