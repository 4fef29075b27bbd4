//! Connections for requests, which should fail fast if none is free.

use std::{
    ops::{Deref, DerefMut},
    time::Duration,
};

use sqlx::{PgConnection, Postgres, pool::PoolConnection};
use tokio::{sync::SemaphorePermit, time::timeout};

use super::{
    connections::{Taken, acquire},
    error::{Error, connected},
    store::Store,
};

/// How long a request waits for a connection: longer than a busy machine or disk stalls, shorter than clients wait for an answer.
pub(super) const IMPATIENT: Duration = Duration::from_millis(2950);

/// A connection for a statement that may read many rows.
pub(super) struct LongRead<'a> {
    connection: PoolConnection<Postgres>,
    _turn: SemaphorePermit<'a>,
}

impl Deref for LongRead<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for LongRead<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}

impl Store {
    /// Returns a connection for a list, a count or a log. These can use only half of the connections for requests, so that the
    /// state of a submission can be read and kills can be written while lists hang.
    pub(super) async fn for_long_read(&self, action: &'static str) -> Result<LongRead<'_>, Error> {
        let acquired = async {
            let turn = self.long_reads.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
            Ok(LongRead { connection: acquire(&self.pool).await?, _turn: turn })
        };
        self.in_time(action, acquired).await
    }

    /// Returns a connection within [`IMPATIENT`].
    pub(super) async fn connection(&self, action: &'static str) -> Result<PoolConnection<Postgres>, Error> {
        self.in_time(action, acquire(&self.pool)).await
    }

    async fn in_time<T>(
        &self,
        action: &'static str,
        acquired: impl Future<Output = Result<T, sqlx::Error>> + Send,
    ) -> Result<T, Error> {
        let acquired = timeout(self.patience, acquired);
        connected(action, async { acquired.await.unwrap_or(Err(sqlx::Error::PoolTimedOut)) }).await
    }

    /// Returns a connection to accept submissions, for a caller that may have spent half of its time in a group commit's queue
    /// before.
    pub(super) async fn to_accept(&self, action: &'static str) -> Result<Taken<'_>, Error> {
        connected(action, self.accepting.take(self.patience / 2)).await
    }
}
