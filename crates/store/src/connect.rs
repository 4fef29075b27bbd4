//! Connects to the database at start, and migrates it.

use std::{fmt, net::IpAddr, str::FromStr, sync::Arc, time::Duration};

use sqlx::{
    ConnectOptions, Connection, PgConnection, Row,
    migrate::MigrateError,
    postgres::{PgConnectOptions, PgPoolOptions, PgRow, PgSslMode},
};
use tokio::sync::Semaphore;

use super::{
    accept,
    connections::{Connections, acquire},
    error::is_outage,
    migrate::migrate,
    primary::{Timelines, is_primary, primary_only},
    session::{self, Session},
    store::Store,
};

/// The address of the database, and how many connections may be used.
#[derive(Clone)]
pub struct DatabaseSettings {
    /// `postgres://user:password@host:port/name`
    pub url: String,
    /// At least 4: two for leases, half of the others for the workers, the rest for requests; from 12 on, three of these accept
    /// submissions.
    pub max_connections: u32,
}

impl DatabaseSettings {
    /// Returns the host if the URL doesn't ask for a server that proves to be this host (`sslmode=verify-full`): a third party in
    /// the network could then read and change what is sent. Connections within this machine need no proof, and an invalid URL
    /// has no host.
    pub fn unverified_host(&self) -> Option<String> {
        let options = PgConnectOptions::from_str(&self.url).ok()?;
        let host = options.get_host();
        let is_local = options.get_socket().is_some()
            || host.starts_with('/')
            || host == "localhost"
            || host.trim_matches(['[', ']']).parse().is_ok_and(|address: IpAddr| address.is_loopback());
        let is_verified = matches!(options.get_ssl_mode(), PgSslMode::VerifyFull);
        (!is_local && !is_verified).then(|| host.to_owned())
    }
}

/// The URL may contain a password.
impl fmt::Debug for DatabaseSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatabaseSettings").field("max_connections", &self.max_connections).finish_non_exhaustive()
    }
}

/// Timeout of the first connection.
const FIRST: Duration = Duration::from_secs(10);
/// Timeout of waiting for a connection to become free, and of opening one.
const PATIENT: Duration = Duration::from_secs(8);
/// With fewer connections in total, accepting has none of its own.
const PLENTY: u32 = 12;
/// The timeout for leases: a lease that is renewed late is lost.
const PROMPT: Duration = Duration::from_secs(2);
/// Leases have two permanent connections, so that a statement that hangs on one of them doesn't cost the leases.
const FOR_LEASES: u32 = 2;
/// Maximum age of a connection, so that no backend's memory grows forever. Those of leases live as long as the process: opening
/// one may take longer than a lease can wait.
const LIFETIME: Duration = Duration::from_secs(300);

/// The database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the database URL can't be read: expected postgres://user:password@host:port/name")]
    Url(#[source] sqlx::Error),
    #[error("can't connect to the database at {address}: is it running, and may this user log in?")]
    Unreachable { address: String, source: sqlx::Error },
    #[error("the database at {address} is a standby, or read-only: the URL has to point to the primary")]
    Standby { address: String },
    #[error(
        "{address} is a connection pooler that doesn't run in session mode: set it to session mode (PgBouncer: pool_mode = session), \
         or let the URL point to Postgres itself"
    )]
    MixedSessions { address: String },
    #[error("reading the state of the database at {address} failed")]
    Inspect { address: String, source: MigrateError },
    #[error("migrating the database at {address} failed")]
    Migrate { address: String, source: MigrateError },
}

impl ConnectError {
    /// Returns whether a retry may succeed: the server doesn't answer or is starting, and the settings are not wrong.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => is_outage(source),
            // A failover is in progress.
            Self::Standby { .. } => true,
            Self::Migrate { source: MigrateError::Execute(source), .. }
            | Self::Migrate { source: MigrateError::ExecuteMigration(source, _), .. } => is_outage(source),
            Self::Inspect { .. } | Self::Migrate { .. } | Self::Url(_) | Self::MixedSessions { .. } => false,
        }
    }
}

/// Returns whether a pooler assigns a different backend to each transaction. In that case, prepared statements, the settings of
/// a connection and the lock of the migrations would be those of other clients.
///
/// While a second connection is in a transaction, the first one, which isn't, keeps its backend only if it has one of its own.
async fn mixes_sessions(first: &mut PgConnection, options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let mut second = options.connect().await?;
    let mut mixed = false;
    // Another client of the pooler may take the backend in between.
    for _ in 0..3 {
        let own = backend(first).await?;
        sqlx::raw_sql("BEGIN").execute(&mut second).await?;
        mixed |= backend(&mut second).await? == own;
        sqlx::raw_sql("COMMIT").execute(&mut second).await?;
        mixed |= backend(first).await? != own;
    }
    let _ = second.close().await;
    Ok(mixed)
}

async fn backend(connection: &mut PgConnection) -> Result<i32, sqlx::Error> {
    let row: PgRow = sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection).await?;
    row.try_get(0)
}

/// Opens a connection to a primary that has a backend of its own for each connection. Returns the server's address with it.
pub(super) async fn first_connection(options: &PgConnectOptions) -> Result<(String, PgConnection), ConnectError> {
    let address = format!("{}:{}", options.get_host(), options.get_port());
    let first = async {
        let mut first = options.connect().await?;
        let primary = is_primary(&mut first, &Timelines::default()).await?;
        let mixed = mixes_sessions(&mut first, options).await?;
        Ok((first, primary, mixed))
    };
    let first = tokio::time::timeout(FIRST, first).await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
    match first {
        Err(source) => Err(ConnectError::Unreachable { address, source }),
        Ok((_, false, _)) => Err(ConnectError::Standby { address }),
        Ok((_, _, true)) => Err(ConnectError::MixedSessions { address }),
        Ok((first, true, false)) => Ok((address, first)),
    }
}

impl Store {
    /// Connects, applies pending migrations (replicas may start concurrently) and opens the pools.
    ///
    /// # Errors
    /// [`ConnectError`], with the server's reason: a pool alone would only say that it timed out.
    pub async fn connect(settings: &DatabaseSettings) -> Result<Self, ConnectError> {
        let options = PgConnectOptions::from_str(&settings.url).map_err(ConnectError::Url)?;
        let options = options.application_name("sparkgate");
        let (address, mut first) = first_connection(&options).await?;
        let migrated = migrate(&mut first, &options).await;
        migrated.map_err(|source| ConnectError::Migrate { address: address.clone(), source })?;
        // The connection is no longer needed, whether closing it succeeds or not.
        let _ = tokio::time::timeout(FIRST, first.close()).await;
        let timelines = Arc::new(Timelines::default());
        let pool = |connections, patience, lifetime, session: Session| {
            primary_only(PgPoolOptions::new(), session.statements(), timelines.clone())
                .max_connections(connections)
                // Opening a connection takes a while on a busy machine; the first request after an idle period shouldn't wait
                // for it.
                .min_connections(1)
                .acquire_timeout(patience)
                .max_lifetime(lifetime)
        };
        let open = |pool: PgPoolOptions| pool.connect_lazy_with(options.clone());
        let all = settings.max_connections.max(4) - FOR_LEASES;
        let for_workers = all / 2;
        let for_accepting = if settings.max_connections >= PLENTY { accept::CONNECTIONS } else { 0 };
        let for_requests = all - for_workers - for_accepting;
        let requests = open(pool(for_requests, PATIENT, Some(LIFETIME), session::REQUESTS));
        let store = Self {
            accepting: if for_accepting > 0 {
                Connections::owned(open(pool(for_accepting, PATIENT, Some(LIFETIME), session::ACCEPTING)))
            } else {
                Connections::shared(requests.clone())
            },
            pool: requests,
            patient: Connections::owned(open(pool(for_workers, PATIENT, Some(LIFETIME), session::WORKERS))),
            leases: open(
                pool(FOR_LEASES, PROMPT, None, session::LEASES).min_connections(FOR_LEASES).idle_timeout(None),
            ),
            patience: super::request::IMPATIENT,
            long_reads: Arc::new(Semaphore::new(for_requests.div_ceil(2) as usize)),
            groups: Arc::default(),
            histories: Arc::default(),
            audit_log: None,
        };
        // A request waits less than three seconds for a connection. On a busy machine, opening the first one may take longer.
        // Each goes back at once: both may come from one pool with a single connection.
        let requests = async { drop(acquire(&store.pool).await) };
        let accepting = async { drop(store.accepting.take(FIRST).await) };
        let opened = futures::future::join(requests, accepting);
        let _ = tokio::time::timeout(FIRST, opened).await;
        Ok(store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str) -> DatabaseSettings {
        DatabaseSettings { url: url.to_owned(), max_connections: 4 }
    }

    #[test]
    fn only_a_server_elsewhere_has_to_prove_its_name() {
        for (url, host) in [
            ("postgres://u@db.example/x", Some("db.example")),
            ("postgres://u@db.example/x?sslmode=require", Some("db.example")),
            ("postgres://u@db.example/x?sslmode=verify-ca", Some("db.example")),
            ("postgres://u@10.1.2.3:5433/x", Some("10.1.2.3")),
            ("postgres://u@db.example/x?sslmode=verify-full", None),
            ("postgres://u@localhost/x", None),
            ("postgres://u@127.0.0.1:5433/x", None),
            ("postgres://u@[::1]/x", None),
            ("postgres://u@%2Fvar%2Frun%2Fpostgresql/x", None),
            ("postgres:///x?host=/var/run/postgresql", None),
        ] {
            assert_eq!(settings(url).unverified_host().as_deref(), host, "{url}");
        }
    }

    #[test]
    fn debug_output_has_no_url() {
        let settings = settings("postgres://u:SEKRETPW@db.example/x");
        assert!(!format!("{settings:?}").contains("SEKRETPW"));
    }
}
