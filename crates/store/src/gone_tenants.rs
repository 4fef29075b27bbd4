//! The end of what belongs to tenants that the access file has no more.

use chrono::{DateTime, Utc};

use super::{
    error::{Error, within},
    store::Store,
};

/// How long a tenant is missing before its webhooks and API keys end: a mistake in the file must not delete them.
const MISSING: &str = "interval '7 days'";

/// What ended with its tenant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct EndedWithTenants {
    pub webhooks: i64,
    pub keys: i64,
}

impl Store {
    /// Notes which webhooks and API keys belong to none of these tenants: such a webhook gets no more changes. Deletes the webhooks, and
    /// revokes the keys, of which that was noted a week ago, so that they aren't those of a later tenant with the same name. Ends nothing
    /// while the clock of the database is past `believed_until`.
    pub async fn end_with_tenants(
        &self,
        tenants: &[&str],
        believed_until: Option<DateTime<Utc>>,
    ) -> Result<EndedWithTenants, Error> {
        let statement = format!(
            "WITH noted_webhooks AS (
                 UPDATE webhooks SET tenant_gone_at = CASE WHEN tenant <> ALL($1) THEN clock_timestamp() END
                 WHERE tenant <> '' AND (tenant <> ALL($1)) = (tenant_gone_at IS NULL)
             ), noted_keys AS (
                 UPDATE api_keys SET tenant_gone_at = CASE WHEN tenant <> ALL($1) THEN clock_timestamp() END
                 WHERE tenant IS NOT NULL AND (tenant <> ALL($1)) = (tenant_gone_at IS NULL)
             ), ended_webhooks AS (
                 DELETE FROM webhooks WHERE tenant <> ALL($1) AND tenant_gone_at < now() - {MISSING}
                     AND ($2::timestamptz IS NULL OR now() <= $2) RETURNING true
             ), ended_keys AS (
                 UPDATE api_keys SET revoked_at = clock_timestamp(), revoked_by = 'gateway'
                 WHERE tenant <> ALL($1) AND tenant_gone_at < now() - {MISSING} AND revoked_at IS NULL
                     AND ($2 IS NULL OR now() <= $2) RETURNING true
             )
             SELECT (SELECT count(*) FROM ended_webhooks) AS webhooks, (SELECT count(*) FROM ended_keys) AS keys"
        );
        let ended = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(tenants).bind(believed_until);
        within("ending what belongs to tenants that are gone", ended.fetch_one(&self.patient)).await
    }
}
