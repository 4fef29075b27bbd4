//! Sessions of browsers. A session is known by a digest of the secret in the browser's cookie, and its tokens are encrypted with a
//! key of that secret, so that a copy of the database is no access.

use std::time::Duration;

use sqlx::QueryBuilder;

use super::{
    actor::Actor,
    audit::{Written, push_entries},
    error::{Error, within},
    store::Store,
};

/// What a session is known by.
pub type BrowserSessionId = [u8; 32];

/// A session that hasn't ended.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct BrowserSession {
    /// The name of the issuer; `key` if it began with an API key, which no issuer is named.
    pub issuer: String,
    /// The principal that signed in.
    pub principal: String,
    /// The tokens, encrypted.
    pub sealed: Vec<u8>,
    /// How often the tokens were renewed.
    pub renewals: i32,
}

/// The values of a new session.
#[derive(Debug, Clone)]
pub struct NewBrowserSession {
    pub id: BrowserSessionId,
    pub issuer: String,
    pub principal: String,
    pub sealed: Vec<u8>,
    pub idle: Duration,
    pub lifetime: Duration,
}

/// The condition that a session hasn't ended.
const LASTS: &str = "expires_at > clock_timestamp() AND last_used_at + idle > clock_timestamp()";

/// Returns the query of an audit entry about the session that a part of the statement has.
fn entry_from(part: &str) -> String {
    let way = "CASE issuer WHEN 'key' THEN 'API key' ELSE 'issuer ' || issuer END";
    format!("SELECT NULL::text AS tenant, NULL::text AS id, 'allowed' AS verdict, {way} AS detail FROM {part}")
}

impl Store {
    /// Stores a new session with an entry of the audit. It replaces the session `earlier` of the same browser, and some of those
    /// that have ended are deleted.
    pub async fn create_browser_session(
        &self,
        new: &NewBrowserSession,
        earlier: Option<&BrowserSessionId>,
        actor: &Actor,
    ) -> Result<(), Error> {
        let action = "storing the session of a browser";
        let mut query = QueryBuilder::new("WITH ended AS (DELETE FROM browser_sessions WHERE id = ");
        query.push_bind(earlier.map(BrowserSessionId::as_slice));
        query.push(
            "), old AS (DELETE FROM browser_sessions WHERE id IN (
                 SELECT id FROM browser_sessions WHERE expires_at < clock_timestamp() LIMIT 100 FOR UPDATE SKIP LOCKED)
             ), new AS (
                 INSERT INTO browser_sessions (id, issuer, principal, sealed, idle, expires_at) VALUES (",
        );
        query.push_bind(new.id.as_slice()).push(", ").push_bind(&new.issuer).push(", ").push_bind(&new.principal);
        query.push(", ").push_bind(&new.sealed).push(", make_interval(secs => ").push_bind(new.idle.as_secs_f64());
        query.push("), clock_timestamp() + make_interval(secs => ").push_bind(new.lifetime.as_secs_f64());
        query.push(")) RETURNING issuer)");
        let entry = entry_from("new");
        push_entries(&mut query, Some(actor), "sign-in", &entry);
        query.push(" SELECT count(*)").push(self.written(Some(actor))).push(" FROM new");
        let mut connection = self.connection(action).await?;
        let created = query.build_query_as().fetch_one(&mut *connection);
        let (_, written): (i64, Written) = within(action, created).await.map_err(Error::after_sending)?;
        self.pass_on_entries(Some(actor), written);
        Ok(())
    }

    /// Returns a session that hasn't ended, and notes about once in a minute that its user opens a page, if `is_use`.
    pub async fn browser_session(&self, id: &BrowserSessionId, is_use: bool) -> Result<Option<BrowserSession>, Error> {
        let action = "reading the session of a browser";
        let mut connection = self.connection(action).await?;
        let statement = format!(
            "WITH used AS (
                 UPDATE browser_sessions SET last_used_at = clock_timestamp()
                 WHERE id = (SELECT id FROM browser_sessions WHERE id = $1 AND $2 AND {LASTS}
                     AND last_used_at < clock_timestamp() - least(interval '1 minute', idle / 2)
                     FOR NO KEY UPDATE SKIP LOCKED)
             )
             SELECT issuer, principal, sealed, renewals FROM browser_sessions WHERE id = $1 AND {LASTS}"
        );
        let session = sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(id.as_slice())
            .bind(is_use)
            .fetch_optional(&mut *connection);
        within(action, session).await
    }

    /// Returns whether there is or was a session, as far as it isn't deleted yet.
    pub async fn knows_browser_session(&self, id: &BrowserSessionId) -> Result<bool, Error> {
        let action = "reading the session of a browser";
        let mut connection = self.connection(action).await?;
        let known = sqlx::query_scalar("SELECT EXISTS (SELECT FROM browser_sessions WHERE id = $1)");
        within(action, known.bind(id.as_slice()).fetch_one(&mut *connection)).await
    }

    /// Claims the renewal of a session's tokens for a while, unless another replica has claimed it or has renewed them since.
    pub async fn claim_browser_session(
        &self,
        id: &BrowserSessionId,
        renewals: i32,
        time: Duration,
    ) -> Result<bool, Error> {
        let statement = sqlx::query(
            "UPDATE browser_sessions SET renewing_until = clock_timestamp() + make_interval(secs => $3)
             WHERE id = $1 AND renewals = $2 AND coalesce(renewing_until, '-infinity') < clock_timestamp()",
        )
        .bind(id.as_slice())
        .bind(renewals)
        .bind(time.as_secs_f64());
        self.change_browser_session("claiming the session of a browser", statement).await
    }

    /// Gives the claim of a session back, with its renewed tokens if there are any.
    pub async fn renew_browser_session(
        &self,
        id: &BrowserSessionId,
        renewals: i32,
        sealed: Option<&[u8]>,
    ) -> Result<bool, Error> {
        let statement = sqlx::query(
            "UPDATE browser_sessions SET renewing_until = NULL, sealed = coalesce($3, sealed),
                 renewals = renewals + ($3 IS NOT NULL)::int
             WHERE id = $1 AND renewals = $2",
        )
        .bind(id.as_slice())
        .bind(renewals)
        .bind(sealed);
        self.change_browser_session("renewing the session of a browser", statement).await
    }

    /// Ends a session, with an entry of the audit if its user asked for it. `false` if there is none.
    pub async fn end_browser_session(&self, id: &BrowserSessionId, actor: Option<&Actor>) -> Result<bool, Error> {
        let action = "ending the session of a browser";
        let mut query = QueryBuilder::new("WITH ended AS (DELETE FROM browser_sessions WHERE id = ");
        query.push_bind(id.as_slice()).push(" RETURNING issuer)");
        let entry = entry_from("ended");
        push_entries(&mut query, actor, "sign-out", &entry);
        query.push(" SELECT count(*)").push(self.written(actor)).push(" FROM ended");
        let mut connection = self.connection(action).await?;
        let ended = query.build_query_as().fetch_one(&mut *connection);
        let (ended, written): (i64, Written) = within(action, ended).await.map_err(Error::after_sending)?;
        self.pass_on_entries(actor, written);
        Ok(ended > 0)
    }

    async fn change_browser_session(
        &self,
        action: &'static str,
        statement: sqlx::query::Query<'_, sqlx::Postgres, sqlx::postgres::PgArguments>,
    ) -> Result<bool, Error> {
        let mut connection = self.connection(action).await?;
        let changed = within(action, statement.execute(&mut *connection)).await.map_err(Error::after_sending)?;
        Ok(changed.rows_affected() > 0)
    }
}
