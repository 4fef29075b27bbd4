//! Reaching the database at start, and its migrations.

use std::{str::FromStr, time::Duration};

use sqlx::{
    ConnectOptions, Connection,
    migrate::MigrateError,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{
    Store, accept,
    connections::Connections,
    error::is_outage,
    migrate::migrate,
    primary::{is_primary, primary_only},
};

/// Where the database is and how many connections it may get.
#[derive(Debug, Clone)]
pub struct DatabaseSettings {
    /// `postgres://user:password@host:port/name`
    pub url: String,
    /// At least 3: one for leases, half for the workers, the rest for requests; from 12 on, three of these accept submissions.
    pub max_connections: u32,
}

/// How long the first connection may take to be made.
const FIRST: Duration = Duration::from_secs(10);
/// How long a connection may take: to become free, and to be made.
const PATIENT: Duration = Duration::from_secs(8);
/// Below so many connections in all, accepting has none of its own.
const PLENTY: u32 = 12;
/// What workers look for is in an index, in the order in which they want it, and what they write has a key. Postgres' planner
/// knows of few rows where many come at once, or where there were none when it planned: it would read and sort all of them for
/// the first sixteen, or read the table for one. What can't be done otherwise still is, and looks so expensive then that it
/// would be compiled first. So a plan doesn't hang on what is asked for, and is made once: reading the row of one pod that was
/// seen takes a quarter of the time that planning it takes.
const BY_INDEX: &str = "SET enable_seqscan = off; SET enable_sort = off; SET enable_hashjoin = off; \
                        SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan; SET jit = off";
/// The same for requests, whose lists may have to be sorted.
const NO_TABLE: &str = "SET enable_seqscan = off; SET jit = off";
/// Accepting is one statement of one shape, which needn't be planned each time.
pub const PLANNED_ONCE: &str = "SET plan_cache_mode = force_generic_plan; SET jit = off";
/// A lease that is renewed late is lost.
const LEASES: Duration = Duration::from_secs(2);

/// The database can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("the database URL can't be read: expected postgres://user:password@host:port/name")]
    Url(#[source] sqlx::Error),
    #[error("can't connect to the database at {address}: is it running, and may this user log in?")]
    Unreachable { address: String, source: sqlx::Error },
    #[error("the database at {address} is a standby, or takes no writes: the URL has to lead to the primary")]
    Standby { address: String },
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
        let first = async {
            let mut first = options.connect().await?;
            let primary = is_primary(&mut first).await?;
            Ok((first, primary))
        };
        let first = tokio::time::timeout(FIRST, first).await.unwrap_or(Err(sqlx::Error::PoolTimedOut));
        let (mut first, primary) = first.map_err(unreachable)?;
        if !primary {
            return Err(ConnectError::Standby { address });
        }
        let migrated = migrate(&mut first).await;
        migrated.map_err(|source| ConnectError::Migrate { address: address.clone(), source })?;
        // Whether it hears the goodbye or not: this one isn't needed any more.
        let _ = tokio::time::timeout(FIRST, first.close()).await;
        let pool = |connections, patience, settings| {
            primary_only(PgPoolOptions::new(), settings)
                .max_connections(connections)
                // Making one takes a while on a busy machine; whoever comes after a quiet time shouldn't wait for it.
                .min_connections(1)
                .acquire_timeout(patience)
                .max_lifetime(Duration::from_secs(300))
                .connect_lazy_with(options.clone())
        };
        let all = settings.max_connections.max(3);
        let for_workers = all / 2;
        let for_accepting = if all >= PLENTY { accept::CONNECTIONS } else { 0 };
        let requests = pool(all - for_workers - for_accepting - 1, PATIENT, NO_TABLE);
        Ok(Self {
            accepting: if for_accepting > 0 {
                Connections::of_own(pool(for_accepting, PATIENT, PLANNED_ONCE))
            } else {
                Connections::shared(requests.clone())
            },
            pool: requests,
            patient: Connections::of_own(pool(for_workers, PATIENT, BY_INDEX)),
            leases: pool(1, LEASES, BY_INDEX),
            patience: super::request::IMPATIENT,
            groups: std::sync::Arc::default(),
        })
    }
}
