//! Connections for requests, whose clients would rather be told soon that there is none.

use std::time::Duration;

use sqlx::{PgPool, Postgres, pool::PoolConnection};
use tokio::time::timeout;

use super::{Error, Store, error::within};

/// How long a request waits for a connection.
pub(super) const IMPATIENT: Duration = Duration::from_millis(950);

impl Store {
    /// A connection within a second, as `serve` sets it.
    ///
    /// Who doesn't get one in time goes, and what was begun for it doesn't: after an outage, while many wait, a connection
    /// that is just being made would otherwise be given up with the one who waited longest, again and again.
    pub(super) async fn connection(&self, action: &'static str) -> Result<PoolConnection<Postgres>, Error> {
        acquire(&self.pool, action, self.patience).await
    }

    /// One to accept submissions with, for those who may have waited half of their time for others before.
    pub(super) async fn accepting_connection(&self, action: &'static str) -> Result<PoolConnection<Postgres>, Error> {
        acquire(&self.accepting, action, self.patience / 2).await
    }
}

async fn acquire(pool: &PgPool, action: &'static str, patience: Duration) -> Result<PoolConnection<Postgres>, Error> {
    if pool.num_idle() > 0 {
        // Nothing needs to be made for it.
        let acquired = timeout(patience, pool.acquire()).await;
        return within(action, async { acquired.unwrap_or(Err(sqlx::Error::PoolTimedOut)) }).await;
    }
    let pool = pool.clone();
    let acquiring = tokio::spawn(async move { pool.acquire().await });
    let acquired = async {
        match timeout(patience, acquiring).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(_)) => Err(sqlx::Error::WorkerCrashed),
            Err(_) => Err(sqlx::Error::PoolTimedOut),
        }
    };
    within(action, acquired).await
}
