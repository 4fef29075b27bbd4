//! Sessions of Spark Connect. Each is a submission; its row here has what only a session has.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use super::{
    error::{Error, within},
    row::{ends, parse, readable, words},
    scoped::Scoped,
    store::Store,
    submissions::{COLUMNS, Row as SubmissionRow, Submission},
};
use sparkgate_submission::{State, SubmissionId};

/// The columns of a session beside those of its submission.
const OWN: &str = "session_name, is_shared, idle_timeout, ready_at, used_at, idled_at, token_digest";
/// Rows of sessions, without the names that submissions have, too.
const SESSIONS: &str =
    "(SELECT submission_id, name AS session_name, shared AS is_shared, idle_timeout, ready_at, used_at, idled_at, token_digest
    FROM connect_sessions) c ON c.submission_id = s.id";
/// How long a driver that runs may take, at least, until its server is reached: images of clients add to its start, and no client can
/// use it before.
const STARTING: Duration = Duration::from_secs(10 * 60);
/// The most sessions of a list.
const LISTED: i64 = 1000;

/// A session with its submission.
#[derive(Debug, Clone, PartialEq)]
pub struct ConnectSession {
    pub submission: Submission,
    pub name: String,
    /// Members of its tenant may use it, too.
    pub is_shared: bool,
    pub idle_timeout: Duration,
    /// When its server was first reached.
    pub ready_at: Option<DateTime<Utc>>,
    /// The last request of a client, accurate to some seconds.
    pub used_at: Option<DateTime<Utc>>,
    /// When it was ended because it was idle.
    pub idled_at: Option<DateTime<Utc>>,
    /// SHA-256 of the token of its server, once its driver was launched.
    pub token_digest: Option<Vec<u8>>,
}

/// The values of a new session.
#[derive(Debug, Clone, Copy)]
pub struct NewConnectSession<'a> {
    pub id: &'a SubmissionId,
    pub tenant: &'a str,
    pub principal: &'a str,
    pub name: &'a str,
    pub is_shared: bool,
    pub idle_timeout: Duration,
    /// The most live sessions of the principal in the tenant, and of the tenant.
    pub most: (u32, u32),
}

/// Whether a session was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenedSession {
    New,
    /// A live session of the principal, or a live shared one of the tenant, has this name.
    Named(SubmissionId),
    /// As many sessions live as the principal, or its tenant, may have.
    Full,
}

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    submission: SubmissionRow,
    session_name: String,
    is_shared: bool,
    idle_timeout: i32,
    ready_at: Option<DateTime<Utc>>,
    used_at: Option<DateTime<Utc>>,
    idled_at: Option<DateTime<Utc>>,
    token_digest: Option<Vec<u8>>,
}

impl TryFrom<Row> for ConnectSession {
    type Error = Error;

    fn try_from(row: Row) -> Result<Self, Error> {
        Ok(Self {
            submission: row.submission.try_into()?,
            name: row.session_name,
            is_shared: row.is_shared,
            idle_timeout: Duration::from_secs(u64::try_from(row.idle_timeout).unwrap_or_default()),
            ready_at: row.ready_at,
            used_at: row.used_at,
            idled_at: row.idled_at,
            token_digest: row.token_digest,
        })
    }
}

/// Returns the states in which a session can't be used any more.
fn over() -> Vec<&'static str> {
    [ends(), words([State::Killing])].concat()
}

/// The condition that the submission of the row `c` has ended, or will, or that there is none, although there was time to accept it.
const HAS_ENDED: &str = "(EXISTS (SELECT FROM submissions s WHERE s.id = c.submission_id AND s.state = ANY($1))
    OR c.created_at < clock_timestamp() - interval '2 minutes'
        AND NOT EXISTS (SELECT FROM submissions s WHERE s.id = c.submission_id))";

impl Store {
    /// Stores a session, unless a live one has its name, or too many live. Concurrent calls may exceed the limits.
    pub async fn open_connect_session(&self, new: &NewConnectSession<'_>) -> Result<OpenedSession, Error> {
        let action = "storing a session of Spark Connect";
        let mut connection = self.connection(action).await?;
        let ended = format!(
            "UPDATE connect_sessions c SET ended_at = clock_timestamp() WHERE c.tenant = $2 AND c.ended_at IS NULL AND {HAS_ENDED}"
        );
        let ended = sqlx::query(sqlx::AssertSqlSafe(ended)).bind(over()).bind(new.tenant);
        within(action, ended.execute(&mut *connection)).await?;
        let stored = sqlx::query_scalar(
            "INSERT INTO connect_sessions (submission_id, tenant, principal, name, idle_timeout, shared)
             SELECT $1, $2, $3, $4, $5, $8
             WHERE (SELECT count(*) FROM connect_sessions WHERE tenant = $2 AND principal = $3 AND ended_at IS NULL) < $6
                 AND (SELECT count(*) FROM connect_sessions WHERE tenant = $2 AND ended_at IS NULL) < $7
             ON CONFLICT DO NOTHING RETURNING true",
        )
        .bind(new.id.as_str())
        .bind(new.tenant)
        .bind(new.principal)
        .bind(new.name)
        .bind(i32::try_from(new.idle_timeout.as_secs()).unwrap_or(i32::MAX))
        .bind(i64::from(new.most.0))
        .bind(i64::from(new.most.1))
        .bind(new.is_shared);
        let stored: Option<bool> = within(action, stored.fetch_optional(&mut *connection)).await?;
        if stored.is_some() {
            return Ok(OpenedSession::New);
        }
        let named = sqlx::query_scalar(
            "SELECT submission_id FROM connect_sessions
             WHERE tenant = $1 AND name = $3 AND ended_at IS NULL AND shared = $4 AND (shared OR principal = $2)",
        );
        let named = named.bind(new.tenant).bind(new.principal).bind(new.name).bind(new.is_shared);
        let named = named.fetch_optional(&mut *connection);
        let named: Option<String> = within(action, named).await?;
        match named {
            Some(id) => Ok(OpenedSession::Named(parse(&id, &id)?)),
            None => Ok(OpenedSession::Full),
        }
    }

    /// Deletes a session whose submission wasn't accepted.
    pub async fn delete_connect_session(&self, id: &SubmissionId) -> Result<(), Error> {
        let action = "deleting a session of Spark Connect";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query("DELETE FROM connect_sessions WHERE submission_id = $1").bind(id.as_str());
        within(action, statement.execute(&mut *connection)).await?;
        Ok(())
    }

    /// Returns whether a submission is a session. Its first launch decides which token its server has: returns the digest of that one.
    pub async fn keep_connect_token(&self, id: &SubmissionId, digest: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let statement = sqlx::query_scalar(
            "UPDATE connect_sessions SET token_digest = coalesce(token_digest, $2) WHERE submission_id = $1
             RETURNING token_digest",
        );
        let statement = statement.bind(id.as_str()).bind(digest).fetch_optional(&self.patient);
        within("recording the token of a session", statement).await
    }

    /// Notes that the server of a session was reached.
    pub async fn note_connect_ready(&self, id: &SubmissionId) -> Result<(), Error> {
        let statement = sqlx::query(
            "UPDATE connect_sessions SET ready_at = clock_timestamp() WHERE submission_id = $1 AND ready_at IS NULL",
        );
        within("noting that a session is ready", statement.bind(id.as_str()).execute(&self.patient)).await?;
        Ok(())
    }

    /// Notes that a session is used.
    pub async fn note_connect_use(&self, id: &SubmissionId) -> Result<(), Error> {
        let statement = sqlx::query(
            "UPDATE connect_sessions SET used_at = clock_timestamp(), ready_at = coalesce(ready_at, clock_timestamp())
             WHERE submission_id = $1",
        );
        within("noting that a session is used", statement.bind(id.as_str()).execute(&self.patient)).await?;
        Ok(())
    }

    /// Returns the sessions that run and that no client has used for their time. Each is returned until its submission is killed. The time
    /// begins when the server was reached; one that isn't reached ends as well, after ten minutes at the earliest.
    ///
    /// None is idle while the clock of the database is past `believed_until`.
    pub async fn idle_connect_sessions(
        &self,
        believed_until: Option<DateTime<Utc>>,
    ) -> Result<Vec<SubmissionId>, Error> {
        let statement = sqlx::query_scalar(
            "UPDATE connect_sessions c SET idled_at = coalesce(idled_at, clock_timestamp())
             FROM submissions s
             WHERE c.ended_at IS NULL AND s.id = c.submission_id AND s.state = 'RUNNING'
                 AND ($1::timestamptz IS NULL OR clock_timestamp() <= $1)
                 AND greatest(c.used_at, c.ready_at, s.started_at) + make_interval(secs =>
                     CASE WHEN c.ready_at IS NULL THEN greatest(c.idle_timeout, $2) ELSE c.idle_timeout END) < clock_timestamp()
             RETURNING c.submission_id",
        );
        let statement = statement.bind(believed_until).bind(STARTING.as_secs_f64()).fetch_all(&self.patient);
        let ids: Vec<String> = within("looking for idle sessions", statement).await?;
        Ok(readable(ids.into_iter().map(|id| parse(&id, &id))))
    }

    /// Frees the names of sessions that have ended, and deletes up to `limit` rows whose submission is no longer kept.
    pub async fn end_connect_sessions(&self, limit: u32) -> Result<(), Error> {
        let action = "ending sessions of Spark Connect";
        let ended = format!(
            "UPDATE connect_sessions c SET ended_at = clock_timestamp() WHERE c.ended_at IS NULL AND {HAS_ENDED}"
        );
        let ended = sqlx::query(sqlx::AssertSqlSafe(ended)).bind(over()).execute(&self.patient);
        within(action, ended).await?;
        // Ids begin with the time of their submission.
        let forgotten = sqlx::query(
            "DELETE FROM connect_sessions WHERE submission_id IN (
                 SELECT submission_id FROM connect_sessions
                 WHERE submission_id < coalesce((SELECT min(id) FROM submissions), '') AND ended_at IS NOT NULL
                 ORDER BY submission_id LIMIT $1)",
        );
        within(action, forgotten.bind(i64::from(limit)).execute(&self.patient)).await?;
        Ok(())
    }

    /// Returns how many sessions live, by tenant.
    pub async fn live_connect_sessions(&self) -> Result<Vec<(String, i64)>, Error> {
        let action = "counting sessions of Spark Connect";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_as(
            "SELECT tenant, count(*) FROM connect_sessions WHERE ended_at IS NULL GROUP BY tenant ORDER BY tenant",
        );
        within(action, statement.fetch_all(&mut *connection)).await
    }
}

impl Scoped {
    /// Returns a session, or `None` if none has this id.
    pub async fn connect_session(&self, id: &SubmissionId) -> Result<Option<ConnectSession>, Error> {
        let action = "reading a session of Spark Connect";
        let mut connection = self.store.connection(action).await?;
        let mut query = self.connect_sessions_where();
        query.push(" AND s.id = ").push_bind(id.as_str().to_owned());
        let row: Option<Row> = within(action, query.build_query_as().fetch_optional(&mut *connection)).await?;
        row.map(ConnectSession::try_from).transpose()
    }

    /// Returns the live session of a principal with this name, or the shared one without a principal; the newest, if several tenants have
    /// one.
    pub async fn connect_session_named(
        &self,
        principal: Option<&str>,
        name: &str,
    ) -> Result<Option<ConnectSession>, Error> {
        let action = "reading a session of Spark Connect";
        let mut connection = self.store.connection(action).await?;
        let mut query = self.connect_sessions_where();
        match principal {
            Some(principal) => query.push(" AND NOT is_shared AND s.principal = ").push_bind(principal.to_owned()),
            None => query.push(" AND is_shared"),
        };
        query.push(" AND session_name = ").push_bind(name.to_owned());
        query.push(" AND s.state <> ALL(").push_bind(over()).push(") ORDER BY number DESC LIMIT 1");
        let row: Option<Row> = within(action, query.build_query_as().fetch_optional(&mut *connection)).await?;
        row.map(ConnectSession::try_from).transpose()
    }

    /// Returns sessions, the newest first: those that live, or all that are kept.
    pub async fn connect_sessions(&self, all: bool) -> Result<Vec<ConnectSession>, Error> {
        let action = "listing sessions of Spark Connect";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = self.connect_sessions_where();
        if !all {
            query.push(" AND s.state <> ALL(").push_bind(over()).push(")");
        }
        query.push(" ORDER BY number DESC LIMIT ").push_bind(LISTED);
        let rows: Vec<Row> = within(action, query.build_query_as().fetch_all(&mut *connection)).await?;
        Ok(readable(rows.into_iter().map(ConnectSession::try_from)))
    }

    fn connect_sessions_where(&self) -> QueryBuilder<Postgres> {
        let mut query = QueryBuilder::new(format!("SELECT {COLUMNS}, {OWN} FROM submissions s JOIN {SESSIONS} WHERE "));
        self.scope.push_condition(&mut query, "s");
        query
    }
}
