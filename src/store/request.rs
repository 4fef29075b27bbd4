//! Connections for requests, whose clients would rather be told soon that there is none.

use std::time::Duration;

use sqlx::{Postgres, pool::PoolConnection};
use tokio::time::timeout;

use super::{
    Error, Store,
    connections::{Taken, acquire},
    error::within,
};

/// How long a request waits for a connection.
pub(super) const IMPATIENT: Duration = Duration::from_millis(950);

impl Store {
    /// A connection within a second, as `serve` sets it.
    pub(super) async fn connection(&self, action: &'static str) -> Result<PoolConnection<Postgres>, Error> {
        let acquired = timeout(self.patience, acquire(&self.pool));
        within(action, async { acquired.await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) }).await
    }

    /// One to accept submissions with, for those who may have waited half of their time for others before.
    pub(super) async fn to_accept(&self, action: &'static str) -> Result<Taken<'_>, Error> {
        within(action, self.accepting.take(self.patience / 2)).await
    }
}
