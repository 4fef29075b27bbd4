//! Reaching the database at start, and its migrations.

use std::{str::FromStr, time::Duration};

use sqlx::{
    ConnectOptions, Connection,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{Store, error::is_outage, migrate::migrate};

/// Where the database is and how many connections it may get.
#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    /// `postgres://user:password@host:port/name`
    pub url: String,
    pub max_connections: u32,
}

/// How long a connection may take: to become free, and to be made.
const PATIENT: Duration = Duration::from_secs(8);
/// A lease that is renewed late is lost.
const LEASES: Duration = Duration::from_secs(2);

/// The database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the database URL can't be read: expected postgres://user:password@host:port/name")]
    Url(#[source] sqlx::Error),
    #[error("can't connect to the database at {address}: is it running, and may this user log in?")]
    Unreachable { address: String, source: sqlx::Error },
    #[error("migrating the database at {address} failed")]
    Migrate { address: String, source: sqlx::migrate::MigrateError },
}

impl ConnectError {
    /// Whether the same may work later: the server doesn't answer or is just starting, nothing is wrong with the settings.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { source, .. } => is_outage(source),
            Self::Migrate { source: sqlx::migrate::MigrateError::Execute(source), .. } => is_outage(source),
            Self::Migrate { .. } | Self::Url(_) => false,
        }
    }
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
        let first = tokio::time::timeout(Duration::from_secs(10), options.connect());
        let mut first = match first.await {
            Ok(connected) => connected.map_err(unreachable)?,
            Err(_) => return Err(unreachable(sqlx::Error::PoolTimedOut)),
        };
        let migrated = migrate(&mut first).await;
        migrated.map_err(|source| ConnectError::Migrate { address: address.clone(), source })?;
        first.close().await.map_err(unreachable)?;
        let pool = |connections, patience| {
            PgPoolOptions::new()
                .max_connections(connections)
                // Making one takes a while on a busy machine; whoever comes after a quiet time shouldn't wait for it.
                .min_connections(1)
                .acquire_timeout(patience)
                .max_lifetime(Duration::from_secs(300))
                .connect_lazy_with(options.clone())
        };
        let for_workers = (settings.max_connections / 2).max(1);
        Ok(Self {
            pool: pool(settings.max_connections.saturating_sub(for_workers + 1).max(1), PATIENT),
            patient: pool(for_workers, PATIENT),
            leases: pool(1, LEASES),
        })
    }
}
