//! Webhooks: subscriptions to state changes that are sent to a URL.

mod deliveries;
mod turns;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder, types::Json};

use super::{
    actor::Actor,
    audit::{Written, push_entries},
    error::{Error, within},
    scoped::Scoped,
    sealed::Sealed,
    store::Store,
};
use sparkgate_submission::SubmissionId;

pub use deliveries::{Delivery, DueDelivery, Queued, Settled, TriedDelivery};
pub use turns::DueWebhook;

/// What webhooks of the installation have instead of a tenant. No tenant has an empty name, so no tenant's scope has them.
pub(crate) const INSTALLATION: &str = "";

/// A webhook, without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Webhook {
    pub id: String,
    pub tenant: String,
    /// The principal that created it.
    pub principal: String,
    pub url: String,
    /// What is sent.
    pub format: String,
    /// Only changes of submissions of the same principal.
    pub own: bool,
    /// Only changes of this submission.
    pub submission_id: Option<String>,
    #[sqlx(flatten)]
    pub filter: WebhookFilter,
    /// Until then, messages are signed with the previous secret, too.
    pub previous_until: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    /// Later changes aren't sent.
    pub expires_at: Option<DateTime<Utc>>,
}

impl Webhook {
    /// Returns whether it belongs to the installation: it gets changes of all tenants.
    pub fn is_of_installation(&self) -> bool {
        self.tenant == INSTALLATION
    }
}

/// Which changes are sent. All criteria have to match; an empty one matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct WebhookFilter {
    /// Any of these.
    pub states: Vec<String>,
    pub name_prefix: Option<String>,
    pub owner: Option<String>,
    pub namespace: Option<String>,
    #[sqlx(json)]
    pub labels: BTreeMap<String, String>,
}

/// The secrets of a webhook as they are stored: a text, encrypted if there is a key.
#[derive(Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredSecrets {
    pub secrets: Vec<u8>,
    pub secrets_key: Option<String>,
}

/// Writes nothing of the secrets.
impl std::fmt::Debug for StoredSecrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredSecrets").field("secrets_key", &self.secrets_key).finish_non_exhaustive()
    }
}

impl From<Sealed> for StoredSecrets {
    fn from(sealed: Sealed) -> Self {
        Self { secrets: sealed.text, secrets_key: Some(sealed.key) }
    }
}

/// The values of a new webhook.
#[derive(Debug, Clone)]
pub struct NewWebhook {
    pub id: String,
    pub tenant: String,
    pub principal: String,
    pub url: String,
    pub format: &'static str,
    pub own: bool,
    pub submission_id: Option<SubmissionId>,
    pub filter: WebhookFilter,
    pub secrets: StoredSecrets,
    /// Relative to the database's clock, in seconds.
    pub expires_in: Option<i64>,
}

const COLUMNS: &str =
    "id, tenant, principal, url, format, own, submission_id, states, name_prefix, owner, namespace, labels,
    previous_until, created_at, expires_at";

/// A row, and its entry of the audit.
#[derive(sqlx::FromRow)]
struct Changed {
    #[sqlx(flatten)]
    webhook: Webhook,
    written: Written,
}

impl Store {
    /// Stores a new webhook with an entry of the audit. `None` if the tenant has `most` already, not counting those of single
    /// submissions.
    pub async fn create_webhook(
        &self,
        new: &NewWebhook,
        most: i64,
        actor: Option<&Actor>,
    ) -> Result<Option<Webhook>, Error> {
        let action = "storing a webhook";
        let mut query = QueryBuilder::new("WITH new AS (");
        push_insert(&mut query, new);
        query.push(" WHERE locked_webhooks(").push_bind(&new.tenant).push(") < ").push_bind(most).push(" RETURNING *)");
        push_entries(&mut query, actor, "create-webhook", &entries("new"));
        query.push(format_args!(" SELECT {COLUMNS}{} FROM new", self.written(actor)));
        let mut connection = self.connection(action).await?;
        let created = query.build_query_as().fetch_optional(&mut *connection);
        let created: Option<Changed> = within(action, created).await.map_err(Error::after_sending)?;
        Ok(created.map(|changed| self.changed(actor, changed)))
    }

    /// Stores a webhook of a submission, before the submission is accepted.
    pub async fn attach_webhook(&self, new: &NewWebhook) -> Result<(), Error> {
        let action = "storing a webhook of a submission";
        let mut query = QueryBuilder::new("");
        push_insert(&mut query, new);
        let mut connection = self.connection(action).await?;
        within(action, query.build().execute(&mut *connection)).await?;
        Ok(())
    }

    /// Stores a webhook of the installation, or replaces its URL. It has no secrets. Returns whether that changed something.
    pub async fn put_installation_webhook(&self, id: &str, url: &str, format: &str) -> Result<bool, Error> {
        let action = "storing the webhook of the installation";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query(
            "INSERT INTO webhooks AS w (id, tenant, principal, url, format, own, states, labels, secrets, since)
             SELECT $1, $2, '', $3, $4, false, '{}', '{}', '', last FROM event_sequence
             ON CONFLICT (id) DO UPDATE SET url = excluded.url, format = excluded.format
                 WHERE (w.url, w.format) IS DISTINCT FROM (excluded.url, excluded.format)",
        )
        .bind(id)
        .bind(INSTALLATION)
        .bind(url)
        .bind(format);
        Ok(within(action, statement.execute(&mut *connection)).await?.rows_affected() > 0)
    }

    /// Deletes a webhook of the installation. Returns whether there was one.
    pub async fn delete_installation_webhook(&self, id: &str) -> Result<bool, Error> {
        let action = "deleting the webhook of the installation";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query("DELETE FROM webhooks WHERE id = $1 AND tenant = $2").bind(id).bind(INSTALLATION);
        Ok(within(action, statement.execute(&mut *connection)).await?.rows_affected() > 0)
    }

    /// Deletes the webhooks of a submission that wasn't accepted.
    pub async fn detach_webhooks(&self, id: &SubmissionId) -> Result<(), Error> {
        let action = "deleting webhooks of a submission";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query("DELETE FROM webhooks WHERE submission_id = $1").bind(id.as_str());
        within(action, statement.execute(&mut *connection)).await?;
        Ok(())
    }

    /// Passes the entries of the audit on.
    fn changed(&self, actor: Option<&Actor>, Changed { webhook, written }: Changed) -> Webhook {
        self.pass_on_entries(actor, written);
        webhook
    }
}

impl Scoped {
    /// Returns the webhooks of the scope, the newest first: those of one submission, or those of none.
    pub async fn webhooks(&self, submission: Option<&SubmissionId>) -> Result<Vec<Webhook>, Error> {
        let action = "listing webhooks";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = self.select("SELECT ", COLUMNS);
        match submission {
            Some(id) => query.push(" AND submission_id = ").push_bind(id.as_str()),
            None => query.push(" AND submission_id IS NULL"),
        };
        query.push(" ORDER BY created_at DESC, id LIMIT 10000");
        within(action, query.build_query_as().fetch_all(&mut *connection)).await
    }

    /// Returns a webhook of the scope.
    pub async fn webhook(&self, id: &str) -> Result<Option<Webhook>, Error> {
        let action = "reading a webhook";
        let mut connection = self.store.connection(action).await?;
        let mut query = self.select("SELECT ", COLUMNS);
        query.push(" AND id = ").push_bind(id);
        within(action, query.build_query_as().fetch_optional(&mut *connection)).await
    }

    /// Returns the secrets of a webhook of the scope.
    pub async fn webhook_secrets(&self, id: &str) -> Result<Option<StoredSecrets>, Error> {
        let action = "reading a webhook";
        let mut connection = self.store.connection(action).await?;
        let mut query = self.select("SELECT ", "secrets, secrets_key");
        query.push(" AND id = ").push_bind(id);
        within(action, query.build_query_as().fetch_optional(&mut *connection)).await
    }

    /// Replaces the secrets of a webhook of the scope, with an entry of the audit, unless they aren't `old` any more. The previous
    /// secret is valid for another `overlap` seconds.
    pub async fn rotate_webhook(
        &self,
        id: &str,
        old: &StoredSecrets,
        new: &StoredSecrets,
        overlap: i32,
        actor: Option<&Actor>,
    ) -> Result<Option<Webhook>, Error> {
        let action = "replacing the secret of a webhook";
        let mut query = self.select("WITH mine AS (SELECT id AS found", "");
        query.push(" AND id = ").push_bind(id);
        query.push("), rotated AS (UPDATE webhooks SET secrets = ").push_bind(&new.secrets);
        query.push(", secrets_key = ").push_bind(&new.secrets_key);
        query.push(", previous_until = clock_timestamp() + make_interval(secs => ").push_bind(overlap);
        query
            .push(") FROM mine WHERE id = found AND secrets = ")
            .push_bind(&old.secrets)
            .push(" RETURNING webhooks.*)");
        push_entries(&mut query, actor, "rotate-webhook", &entries("rotated"));
        query.push(format_args!(" SELECT {COLUMNS}{} FROM rotated", self.store.written(actor)));
        let mut connection = self.store.connection(action).await?;
        let rotated = query.build_query_as().fetch_optional(&mut *connection);
        let rotated: Option<Changed> = within(action, rotated).await.map_err(Error::after_sending)?;
        Ok(rotated.map(|changed| self.store.changed(actor, changed)))
    }

    /// Deletes a webhook of the scope and its deliveries, with an entry of the audit. `false` if there is none.
    pub async fn delete_webhook(&self, id: &str, actor: Option<&Actor>) -> Result<bool, Error> {
        let action = "deleting a webhook";
        let mut query = self.select("WITH mine AS (SELECT id AS found", "");
        query.push(" AND id = ").push_bind(id);
        query.push("), gone AS (DELETE FROM webhooks USING mine WHERE id = found RETURNING webhooks.*)");
        push_entries(&mut query, actor, "delete-webhook", &entries("gone"));
        query.push(format_args!(" SELECT {COLUMNS}{} FROM gone", self.store.written(actor)));
        let mut connection = self.store.connection(action).await?;
        let deleted = query.build_query_as().fetch_optional(&mut *connection);
        let deleted: Option<Changed> = within(action, deleted).await.map_err(Error::after_sending)?;
        Ok(deleted.map(|changed| self.store.changed(actor, changed)).is_some())
    }

    /// Returns the begin of a statement that reads webhooks of the scope.
    fn select(&self, select: &str, columns: &str) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new(select);
        query.push(columns).push(" FROM webhooks w WHERE ");
        self.scope.push_condition(&mut query, "w");
        query
    }
}

/// Appends the statement that inserts a webhook, up to its condition.
fn push_insert(query: &mut QueryBuilder<Postgres>, new: &NewWebhook) {
    query.push(
        "INSERT INTO webhooks (id, tenant, principal, url, format, own, submission_id, states, name_prefix, owner, namespace,
             labels, secrets, secrets_key, expires_at, since)
         SELECT ",
    );
    query.push_bind(&new.id).push(", ").push_bind(&new.tenant).push(", ").push_bind(&new.principal).push(", ");
    query.push_bind(&new.url).push(", ").push_bind(new.format).push(", ").push_bind(new.own).push(", ");
    query.push_bind(new.submission_id.as_ref().map(SubmissionId::as_str)).push(", ");
    let WebhookFilter { states, name_prefix, owner, namespace, labels } = &new.filter;
    query.push_bind(states).push(", ").push_bind(name_prefix).push(", ").push_bind(owner).push(", ");
    query.push_bind(namespace).push(", ").push_bind(Json(labels)).push(", ");
    query.push_bind(&new.secrets.secrets).push(", ").push_bind(&new.secrets.secrets_key);
    query
        .push(", clock_timestamp() + make_interval(secs => ")
        .push_bind(new.expires_in)
        .push("), last FROM event_sequence");
}

/// Returns the entries of the audit for webhooks of `from`. A path may be a credential, so only the host is in them.
fn entries(from: &str) -> String {
    format!(
        "SELECT tenant, submission_id AS id, 'allowed' AS verdict,
             'webhook ' || id || ', ' || substring(url FROM '^[a-z]+://([^/?#]*)') AS detail FROM {from}"
    )
}
