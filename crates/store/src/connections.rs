//! Connections for workers, and for accepting submissions. sqlx's pool checks each returned connection before its next use,
//! which takes as long as a small statement; here, a connection stays available for the next statement, if that follows soon.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

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
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use super::primary::BELIEVED;

/// A pool, and connections of it that are kept ready. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    pool: PgPool,
    /// `None` if other code also takes connections from the pool.
    at_hand: Option<Arc<AtHand>>,
}

#[derive(Debug)]
struct AtHand {
    /// As many permits as connections: callers wait here, and get the connection that the previous one returned.
    turns: Semaphore,
    free: Mutex<Vec<Held>>,
}

/// A connection, and when the pool returned it.
#[derive(Debug)]
struct Held(PoolConnection<Postgres>, Instant);

/// A connection for one statement.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    held: Held,
    at_hand: Option<(&'a AtHand, SemaphorePermit<'a>)>,
}

impl Connections {
    /// Creates connections of a pool that no other code uses.
    pub(super) fn owned(pool: PgPool) -> Self {
        let most = usize::try_from(pool.options().get_max_connections()).unwrap_or(Semaphore::MAX_PERMITS);
        Self { pool, at_hand: Some(Arc::new(AtHand { turns: Semaphore::new(most), free: Mutex::default() })) }
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
                let busy = most.saturating_sub(at_hand.turns.available_permits());
                (busy, open.saturating_sub(busy), most)
            }
            None => (open.saturating_sub(idle), idle, most),
        }
    }

    pub(super) async fn close(&self) {
        if let Some(at_hand) = &self.at_hand {
            at_hand.turns.close();
            at_hand.free().clear();
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
            return Ok(Taken { held: self.acquired().await?, at_hand: None });
        };
        let turn = at_hand.turns.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let held = match at_hand.last() {
            Some(held) => held,
            None => self.acquired().await?,
        };
        Ok(Taken { held, at_hand: Some((at_hand, turn)) })
    }

    async fn acquired(&self) -> Result<Held, sqlx::Error> {
        Ok(Held(acquire(&self.pool).await?, Instant::now()))
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
        &mut self.held.0
    }

    /// Returns a connection whose statement has completed. All other connections go back to the pool, which checks them.
    fn give_back(self) {
        if let Some((at_hand, turn)) = self.at_hand {
            let mut free = at_hand.free();
            if !at_hand.turns.is_closed() {
                free.push(self.held);
            }
            drop((free, turn));
        }
    }
}

impl AtHand {
    /// Returns the connection that was used last. Connections that are due for a check of their server go back to the pool.
    fn last(&self) -> Option<Held> {
        let mut free = self.free();
        free.retain(|Held(_, since)| since.elapsed() < BELIEVED);
        free.pop()
    }

    fn free(&self) -> MutexGuard<'_, Vec<Held>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
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
