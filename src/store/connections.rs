//! The workers' connections. One that comes back to sqlx's pool is asked whether it lives, which takes as long as a small
//! statement; here it stays at hand for the next statement, if that follows soon.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use futures::{
    FutureExt, StreamExt, TryFutureExt, TryStreamExt,
    future::BoxFuture,
    stream::{self, BoxStream},
};
use sqlx::{
    Describe, Either, Execute, Executor, FromRow, PgPool, Postgres, SqlStr,
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
struct Taken<'a> {
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
        let mut taken = self.take().await?;
        let all = statement.fetch_all(&mut *taken.held.0).await?;
        taken.give_back();
        Ok(all)
    }

    /// For as long as the pool is set to let wait.
    async fn take(&self) -> Result<Taken<'_>, sqlx::Error> {
        let Some(at_hand) = self.at_hand.as_deref() else {
            return Ok(Taken { held: self.made().await?, at_hand: None });
        };
        let turn = timeout(self.pool.options().get_acquire_timeout(), at_hand.turns.acquire()).await;
        let turn = turn.map_err(|_| sqlx::Error::PoolTimedOut)?.map_err(|_| sqlx::Error::PoolClosed)?;
        let held = match at_hand.last() {
            Some(held) => held,
            None => self.made().await?,
        };
        Ok(Taken { held, at_hand: Some((at_hand, turn)) })
    }

    async fn made(&self) -> Result<Held, sqlx::Error> {
        Ok(Held(self.pool.acquire().await?, Instant::now()))
    }
}

impl Taken<'_> {
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
            let mut taken = self.take().await?;
            let all: Vec<_> = taken.held.0.fetch_many(query).try_collect().await?;
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
            let mut taken = self.take().await?;
            let one = taken.held.0.fetch_optional(query).await?;
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
        async move { self.take().await?.held.0.prepare_with(sql, parameters).await }.boxed()
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, sqlx::Error>>
    where
        'c: 'e,
    {
        async move { self.take().await?.held.0.describe(sql).await }.boxed()
    }
}
