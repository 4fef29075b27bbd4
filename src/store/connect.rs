//! Reaching the database at start, and its migrations.

use std::{str::FromStr, sync::Arc, time::Duration};

use sqlx::{
    ConnectOptions, Connection, PgConnection, Row,
    migrate::MigrateError,
    postgres::{PgConnectOptions, PgPoolOptions, PgRow},
};
use tokio::sync::Semaphore;

use super::{
    Store, accept,
    connections::Connections,
    error::is_outage,
    migrate::migrate,
    primary::{is_primary, primary_only},
    session::{self, Session},
};

/// Where the database is and how many connections it may get.
#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    /// `postgres://user:password@host:port/name`
    pub url: String,
    /// At least 4: two for leases, half of the others for the workers, the rest for requests; from 12 on, three of these accept
    /// submissions.
    pub max_connections: u32,
}

/// How long the first connection may take to be made.
const FIRST: Duration = Duration::from_secs(10);
/// How long a connection may take: to become free, and to be made.
const PATIENT: Duration = Duration::from_secs(8);
/// Below so many connections in all, accepting has none of its own.
const PLENTY: u32 = 12;
/// The same for leases: a lease that is renewed late is lost.
const PROMPT: Duration = Duration::from_secs(2);
/// Leases have two that are always there, so that one on which a statement is stuck doesn't cost them.
const FOR_LEASES: u32 = 2;
/// Beyond this a connection is made anew, so that no backend's memory grows for ever. Those of leases are as old as the
/// process: making one may take longer than a lease can wait.
const LIFETIME: Duration = Duration::from_secs(300);

/// The database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the database URL can't be read: expected postgres://user:password@host:port/name")]
    Url(#[source] sqlx::Error),
    #[error("can't connect to the database at {address}: is it running, and may this user log in?")]
    Unreachable { address: String, source: sqlx::Error },
    #[error("the database at {address} is a standby, or takes no writes: the URL has to lead to the primary")]
    Standby { address: String },
    #[error(
        "{address} is a pooler that mixes the sessions of its clients: set it to session mode (PgBouncer: pool_mode = session), \
         or let the URL lead to Postgres itself"
    )]
    MixedSessions { address: String },
    #[error("migrating the database at {address} failed")]
    Migrate { address: String, source: MigrateError },
}

impl ConnectError {
    /// Whether the same may work later: the server doesn't answer or is just starting, nothing is wrong with the settings.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => is_outage(source),
            // A fail-over is under way.
            Self::Standby { .. } => true,
            Self::Migrate { source: MigrateError::Execute(source), .. }
            | Self::Migrate { source: MigrateError::ExecuteMigration(source, _), .. } => is_outage(source),
            Self::Migrate { .. } | Self::Url(_) | Self::MixedSessions { .. } => false,
        }
    }
}

/// Whether a pooler gives each transaction any backend. There, statements that are prepared once, the settings of a
/// connection and the lock of the migrations would be those of other clients.
///
/// While a second connection is in a transaction, the first, which isn't, keeps its own backend only if that is its own.
async fn mixes_sessions(first: &mut PgConnection, options: &PgConnectOptions) -> Result<bool, sqlx::Error> {
    let mut second = options.connect().await?;
    let mut mixed = false;
    // Other clients of the pooler may take the backend in between.
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

impl Store {
    /// Connects, applies the migrations that are missing (replicas may start together) and opens the pools.
    ///
    /// # Errors
    /// [`ConnectError`], with the server's reason: a pool alone would only say that it timed out.
    pub async fn connect(settings: &DatabaseSettings) -> Result<Self, ConnectError> {
        let options = PgConnectOptions::from_str(&settings.url).map_err(ConnectError::Url)?;
        let options = options.application_name("sparkgate");
        let address = format!("{}:{}", options.get_host(), options.get_port());
        let unreachable = |source| ConnectError::Unreachable { address: address.clone(), source };
        let first = async {
            let mut first = options.connect().await?;
            let primary = is_primary(&mut first).await?;
            let mixed = mixes_sessions(&mut first, &options).await?;
            Ok((first, primary, mixed))
        };
        let first = tokio::time::timeout(FIRST, first).await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        let (mut first, primary, mixed) = first.map_err(unreachable)?;
        if !primary {
            return Err(ConnectError::Standby { address });
        }
        if mixed {
            return Err(ConnectError::MixedSessions { address });
        }
        let migrated = migrate(&mut first).await;
        migrated.map_err(|source| ConnectError::Migrate { address: address.clone(), source })?;
        // Whether it hears the goodbye or not: this one isn't needed any more.
        let _ = tokio::time::timeout(FIRST, first.close()).await;
        let pool = |connections, patience, lifetime, session: Session| {
            primary_only(PgPoolOptions::new(), session.statements())
                .max_connections(connections)
                // Making one takes a while on a busy machine; whoever comes after a quiet time shouldn't wait for it.
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
        Ok(Self {
            accepting: if for_accepting > 0 {
                Connections::of_own(open(pool(for_accepting, PATIENT, Some(LIFETIME), session::ACCEPTING)))
            } else {
                Connections::shared(requests.clone())
            },
            pool: requests,
            patient: Connections::of_own(open(pool(for_workers, PATIENT, Some(LIFETIME), session::WORKERS))),
            leases: open(
                pool(FOR_LEASES, PROMPT, None, session::LEASES).min_connections(FOR_LEASES).idle_timeout(None),
            ),
            patience: super::request::IMPATIENT,
            long_reads: Arc::new(Semaphore::new(for_requests.div_ceil(2) as usize)),
            groups: Arc::default(),
        })
    }
}
