//! Connections that workers use, and that submissions are accepted with. One that comes back to sqlx's pool is asked whether
//! it lives, which takes as long as a small statement; here it stays at hand for the next statement, if that follows soon.

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

/// A pool, and connections of it that are at hand. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    pool: PgPool,
    /// `None` if somebody else waits for connections of the pool, too.
    at_hand: Option<Arc<AtHand>>,
}

#[derive(Debug)]
struct AtHand {
    /// As many as there may be connections: whoever waits does it here, and is given what the one before leaves.
    turns: Semaphore,
    free: Mutex<Vec<Held>>,
}

/// A connection and when the pool gave it out.
#[derive(Debug)]
struct Held(PoolConnection<Postgres>, Instant);

/// A connection for one statement.
#[derive(Debug)]
pub(super) struct Taken<'a> {
    held: Held,
    at_hand: Option<(&'a AtHand, SemaphorePermit<'a>)>,
}

impl Connections {
    /// `pool` is nobody else's.
    pub(super) fn of_own(pool: PgPool) -> Self {
        let most = usize::try_from(pool.options().get_max_connections()).unwrap_or(Semaphore::MAX_PERMITS);
        Self { pool, at_hand: Some(Arc::new(AtHand { turns: Semaphore::new(most), free: Mutex::default() })) }
    }

    pub(super) fn shared(pool: PgPool) -> Self {
        Self { pool, at_hand: None }
    }

    pub(super) async fn close(&self) {
        if let Some(at_hand) = &self.at_hand {
            at_hand.turns.close();
            at_hand.free().clear();
        }
        self.pool.close().await;
    }

    /// All rows of a statement that has as many as there are drivers: each is read as it comes.
    pub(super) async fn read_all<T>(
        &self,
        statement: QueryAs<'_, Postgres, T, PgArguments>,
    ) -> Result<Vec<T>, sqlx::Error>
    where
        T: Send + Unpin + for<'r> FromRow<'r, PgRow>,
    {
        self.take_in_time().await?.read_all(statement).await
    }

    /// Waits for a connection for so long.
    pub(super) async fn take(&self, patience: Duration) -> Result<Taken<'_>, sqlx::Error> {
        timeout(patience, self.next()).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// For as long as the pool is set to let wait.
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

/// A connection of the pool. Who waits for it may go, and what was begun for it doesn't: after an outage, while many wait, a
/// connection that is just being made would otherwise be given up with the one who waited longest, again and again.
///
/// The future of sqlx's is large, and would be copied with all those that hold it.
pub(super) fn acquire(pool: &PgPool) -> BoxFuture<'static, Result<PoolConnection<Postgres>, sqlx::Error>> {
    let acquiring = pool.acquire();
    if pool.num_idle() > 0 {
        // Nothing needs to be made for it.
        return acquiring.boxed();
    }
    tokio::spawn(acquiring).map(|acquired| acquired.unwrap_or(Err(sqlx::Error::WorkerCrashed))).boxed()
}

impl Taken<'_> {
    /// All rows of the statement that it was taken for.
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

    /// Of a connection whose statement is through. Any other goes to the pool, which looks after it.
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
    /// The one that was used last. Whoever was out for so long that the pool would ask where it leads goes back.
    fn last(&self) -> Option<Held> {
        let mut free = self.free();
        free.retain(|Held(_, since)| since.elapsed() < BELIEVED);
        free.pop()
    }

    fn free(&self) -> MutexGuard<'_, Vec<Held>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As sqlx's own pool does it, but that all rows are read before the first is handed out.
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
