//! Connections for workers, and for accepting submissions. sqlx's pool checks each returned connection before its next use,
//! which takes as long as a small statement; here, a connection stays available for the next statement, if that follows soon.

mod at_hand;

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt, StreamExt, TryFutureExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use sqlx::{
    Describe, Either, Execute, Executor, FromRow, PgConnection, PgPool, Postgres, SqlStr,
    pool::PoolConnection,
    postgres::{PgArguments, PgQueryResult, PgRow, PgStatement, PgTypeInfo},
    query::QueryAs,
};
use tokio::time::timeout;

use self::at_hand::{AtHand, Turn};
use super::primary::BELIEVED;

type Held = at_hand::Held<PoolConnection<Postgres>>;

/// A pool, and connections of it that are kept ready. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    pool: PgPool,
    /// `None` if other code also takes connections from the pool.
    at_hand: Option<Arc<AtHand<PoolConnection<Postgres>>>>,
}

/// A connection for one statement.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    held: Held,
    turn: Option<Turn<'a, PoolConnection<Postgres>>>,
}

impl Connections {
    /// Creates connections of a pool that no other code uses.
    pub(super) fn owned(pool: PgPool) -> Self {
        // Older connections go back to the pool, which checks their server.
        let at_hand = AtHand::new(pool.options().get_max_connections() as usize, BELIEVED);
        Self { pool, at_hand: Some(Arc::new(at_hand)) }
    }

    pub(super) fn shared(pool: PgPool) -> Self {
        Self { pool, at_hand: None }
    }

    /// Returns how many connections are in use, how many are idle, and how many there may be.
    pub(super) fn usage(&self) -> (usize, usize, usize) {
        let (open, idle) = (self.pool.size() as usize, self.pool.num_idle());
        let most = self.pool.options().get_max_connections() as usize;
        match &self.at_hand {
            // Connections that are kept ready are idle, too.
            Some(at_hand) => {
                let busy = at_hand.busy();
                (busy, open.saturating_sub(busy), most)
            }
            None => (open.saturating_sub(idle), idle, most),
        }
    }

    pub(super) async fn close(&self) {
        if let Some(at_hand) = &self.at_hand {
            at_hand.close();
        }
        self.pool.close().await;
    }

    /// Returns all rows of a statement that may return one for each driver: each row is converted as it arrives.
    pub(super) async fn read_all<T>(
        &self,
        statement: QueryAs<'_, Postgres, T, PgArguments>,
    ) -> Result<Vec<T>, sqlx::Error>
    where
        T: Send + Unpin + for<'r> FromRow<'r, PgRow>,
    {
        self.take_in_time().await?.read_all(statement).await
    }

    /// Waits for a connection, up to `patience`.
    pub(super) async fn take(&self, patience: Duration) -> Result<Taken<'_>, sqlx::Error> {
        timeout(patience, self.next()).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// Waits for a connection, up to the timeout of the pool.
    async fn take_in_time(&self) -> Result<Taken<'_>, sqlx::Error> {
        self.take(self.pool.options().get_acquire_timeout()).await
    }

    async fn next(&self) -> Result<Taken<'_>, sqlx::Error> {
        let Some(at_hand) = self.at_hand.as_deref() else {
            return Ok(Taken { held: self.acquired().await?, turn: None });
        };
        let turn = at_hand.turn().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let held = match turn.last() {
            Some(held) => held,
            None => self.acquired().await?,
        };
        Ok(Taken { held, turn: Some(turn) })
    }

    async fn acquired(&self) -> Result<Held, sqlx::Error> {
        Ok(Held::new(acquire(&self.pool).await?))
    }
}

/// Acquires a connection of the pool. If the caller is dropped, a connection that is being opened or checked isn't: otherwise,
/// with many callers on a slow machine, each connection would be dropped with the caller that waited longest, again and again.
///
/// Boxed, because sqlx's future is large and would be copied with every future that contains it.
pub(super) fn acquire(pool: &PgPool) -> BoxFuture<'static, Result<PoolConnection<Postgres>, sqlx::Error>> {
    tokio::spawn(pool.acquire()).map(|acquired| acquired.unwrap_or(Err(sqlx::Error::WorkerCrashed))).boxed()
}

impl Taken<'_> {
    /// Returns all rows of the statement that the connection was taken for.
    pub(super) async fn read_all<T>(
        mut self,
        statement: QueryAs<'_, Postgres, T, PgArguments>,
    ) -> Result<Vec<T>, sqlx::Error>
    where
        T: Send + Unpin + for<'r> FromRow<'r, PgRow>,
    {
        let all = statement.fetch_all(self.connection()).await?;
        self.give_back();
        Ok(all)
    }

    fn connection(&mut self) -> &mut PgConnection {
        self.held.get_mut()
    }

    /// Returns a connection whose statement has completed. All other connections go back to the pool, which checks them.
    fn give_back(self) {
        if let Some(turn) = self.turn {
            turn.leave(self.held);
        }
    }
}

/// Like the implementation of sqlx's pool, except that all rows are read before the first is returned.
impl<'c> Executor<'c> for &'c Connections {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let all = async move {
            let mut taken = self.take_in_time().await?;
            let all: Vec<_> = taken.connection().fetch_many(query).try_collect().await?;
            taken.give_back();
            Ok(stream::iter(all.into_iter().map(Ok)))
        };
        all.try_flatten_stream().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, sqlx::Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let one = async move {
            let mut taken = self.take_in_time().await?;
            let one = taken.connection().fetch_optional(query).await?;
            taken.give_back();
            Ok(one)
        };
        one.boxed()
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, sqlx::Error>>
    where
        'c: 'e,
    {
        async move { self.take_in_time().await?.connection().prepare_with(sql, parameters).await }.boxed()
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, sqlx::Error>>
    where
        'c: 'e,
    {
        async move { self.take_in_time().await?.connection().describe(sql).await }.boxed()
    }
}
