//! API keys: which exist, and the digest by which one is recognised. The text of a key is never stored.

use chrono::{DateTime, Utc};
use sqlx::QueryBuilder;

use super::{
    actor::Actor,
    audit::{Written, push_entries},
    error::{Error, within},
    scoped::Scoped,
    store::Store,
};

/// An API key, without its digest.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ApiKey {
    /// The part of the key that isn't secret.
    pub id: String,
    pub name: String,
    /// `None` for all tenants.
    pub tenant: Option<String>,
    pub role: String,
    pub created_at: DateTime<Utc>,
    pub created_by: String,
    pub expires_at: Option<DateTime<Utc>>,
    pub revoked_at: Option<DateTime<Utc>>,
    /// Accurate to some minutes.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// A key to recognise a caller by.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct KeyRecord {
    #[sqlx(flatten)]
    pub key: ApiKey,
    /// SHA-256 of the whole text.
    pub digest: Vec<u8>,
}

/// The values of a new key.
#[derive(Debug, Clone)]
pub struct NewApiKey {
    pub id: String,
    pub digest: Vec<u8>,
    pub name: String,
    pub tenant: Option<String>,
    pub role: String,
    pub created_by: String,
    /// Relative to the database's clock, in seconds.
    pub expires_in: Option<i64>,
}

/// A new key, and its entry of the audit.
#[derive(sqlx::FromRow)]
struct Created {
    #[sqlx(flatten)]
    key: ApiKey,
    written: Written,
}

const COLUMNS: &str = "id, name, tenant, role, created_at, created_by, expires_at, revoked_at, last_used_at";

impl Store {
    /// Stores a new key with an entry of the audit, and returns it.
    pub async fn create_api_key(&self, new: &NewApiKey, actor: Option<&Actor>) -> Result<ApiKey, Error> {
        let action = "storing an API key";
        let mut query = QueryBuilder::new(
            "WITH new AS (
                 INSERT INTO api_keys (id, digest, name, tenant, role, created_by, expires_at) VALUES (",
        );
        query.push_bind(&new.id).push(", ").push_bind(&new.digest).push(", ").push_bind(&new.name).push(", ");
        query.push_bind(&new.tenant).push(", ").push_bind(&new.role).push(", ").push_bind(&new.created_by);
        query.push(", clock_timestamp() + make_interval(secs => ").push_bind(new.expires_in).push(")) RETURNING *)");
        let entry =
            "SELECT tenant, NULL::text AS id, 'allowed' AS verdict, 'key ' || id || ', ' || role AS detail FROM new";
        push_entries(&mut query, actor, "create-key", entry);
        query.push(format_args!(" SELECT {COLUMNS}{} FROM new", self.written(actor)));
        let mut connection = self.connection(action).await?;
        let key = query.build_query_as().fetch_one(&mut *connection);
        let Created { key, written } = within(action, key).await.map_err(Error::after_sending)?;
        self.pass_on_entries(actor, written);
        Ok(key)
    }

    /// Returns the key with this digest if it is neither revoked nor expired, and notes about once in five minutes that it is used.
    /// The id is public: it alone is no use of a key.
    pub async fn valid_api_key(&self, id: &str, digest: &[u8]) -> Result<Option<KeyRecord>, Error> {
        let action = "reading an API key";
        let mut connection = self.connection(action).await?;
        let statement = format!(
            "WITH used AS (
                 UPDATE api_keys SET last_used_at = clock_timestamp()
                 WHERE id = (SELECT id FROM api_keys WHERE id = $1 AND digest = $2
                     AND coalesce(last_used_at, '-infinity') < clock_timestamp() - interval '5 minutes'
                     FOR NO KEY UPDATE SKIP LOCKED)
             )
             SELECT {COLUMNS}, digest FROM api_keys
             WHERE id = $1 AND digest = $2 AND revoked_at IS NULL AND coalesce(expires_at, 'infinity') > clock_timestamp()"
        );
        let key = sqlx::query_as(sqlx::AssertSqlSafe(statement)).bind(id).bind(digest).fetch_optional(&mut *connection);
        within(action, key).await
    }

    /// Returns the names of keys, each with its id. Those that don't exist are missing.
    pub async fn api_key_names(&self, ids: &[&str]) -> Result<Vec<(String, String)>, Error> {
        let action = "reading the names of API keys";
        let mut connection = self.connection(action).await?;
        let names = sqlx::query_as("SELECT id, name FROM api_keys WHERE id = ANY($1)");
        within(action, names.bind(ids).fetch_all(&mut *connection)).await
    }

    /// Returns whether the key with this id is neither revoked nor expired.
    pub async fn is_api_key_valid(&self, id: &str) -> Result<bool, Error> {
        let action = "reading an API key";
        let mut connection = self.connection(action).await?;
        let valid = sqlx::query_scalar(
            "SELECT EXISTS (SELECT FROM api_keys
                 WHERE id = $1 AND revoked_at IS NULL AND coalesce(expires_at, 'infinity') > clock_timestamp())",
        );
        within(action, valid.bind(id).fetch_one(&mut *connection)).await
    }
}

impl Scoped {
    /// Returns the keys of the scope's tenants, the newest first. Keys for all tenants are in the scope of the installation
    /// only.
    pub async fn api_keys(&self) -> Result<Vec<ApiKey>, Error> {
        let action = "listing API keys";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::new("SELECT ");
        query.push(COLUMNS).push(" FROM (SELECT *, created_by AS principal FROM api_keys) k WHERE ");
        self.scope.push_condition(&mut query, "k");
        query.push(" ORDER BY created_at DESC, id LIMIT 10000");
        within(action, query.build_query_as().fetch_all(&mut *connection)).await
    }

    /// Revokes a key of the scope with an entry of the audit. `false` if there is none that isn't revoked yet.
    pub async fn revoke_api_key(&self, id: &str, by: &str, actor: Option<&Actor>) -> Result<bool, Error> {
        let action = "revoking an API key";
        let mut query = QueryBuilder::new(
            "WITH mine AS (
                 SELECT id FROM (SELECT *, created_by AS principal FROM api_keys) k WHERE id = ",
        );
        query.push_bind(id).push(" AND ");
        self.scope.push_condition(&mut query, "k");
        query.push(
            " AND revoked_at IS NULL), revoked AS (UPDATE api_keys k SET revoked_at = clock_timestamp(), revoked_by = ",
        );
        query.push_bind(by).push(" FROM mine WHERE k.id = mine.id RETURNING k.id, k.tenant)");
        let entry = "SELECT tenant, NULL::text AS id, 'allowed' AS verdict, 'key ' || id AS detail FROM revoked";
        push_entries(&mut query, actor, "revoke-key", entry);
        query.push(" SELECT count(*)").push(self.store.written(actor)).push(" FROM revoked");
        let mut connection = self.store.connection(action).await?;
        let revoked = query.build_query_as().fetch_one(&mut *connection);
        let (revoked, written): (i64, Written) = within(action, revoked).await.map_err(Error::after_sending)?;
        self.store.pass_on_entries(actor, written);
        Ok(revoked > 0)
    }
}
