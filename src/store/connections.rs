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
    Describe, Either, Execute, Executor, PgPool, Postgres, SqlStr,
    pool::PoolConnection,
    postgres::{PgQueryResult, PgRow, PgStatement, PgTypeInfo},
};

use super::primary::BELIEVED;

/// A pool, and connections of it that are at hand. Cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    /// For statements with as many rows as there are drivers: it hands out one by one.
    pub(super) pool: PgPool,
    /// `None` if somebody else may wait for connections of the pool, without our knowing.
    at_hand: Option<Arc<AtHand>>,
}

#[derive(Debug, Default)]
struct AtHand(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    free: Vec<Taken>,
    /// How many wait for the pool: it serves them in their order, so what becomes free goes there.
    waiting: usize,
    closed: bool,
}

/// A connection and when the pool gave it out.
#[derive(Debug)]
struct Taken(PoolConnection<Postgres>, Instant);

impl Connections {
    /// `pool` is nobody else's.
    pub(super) fn of_own(pool: PgPool) -> Self {
        Self { pool, at_hand: Some(Arc::default()) }
    }

    pub(super) fn shared(pool: PgPool) -> Self {
        Self { pool, at_hand: None }
    }

    pub(super) async fn close(&self) {
        if let Some(at_hand) = &self.at_hand {
            let mut state = at_hand.state();
            state.closed = true;
            state.free.clear();
        }
        self.pool.close().await;
    }

    /// As long as the pool doesn't give one out, for as long as it is set to let wait.
    async fn take(&self) -> Result<Taken, sqlx::Error> {
        let _waiting = match self.at_hand.as_deref().map(AtHand::take) {
            Some(Ok(taken)) => return Ok(taken),
            Some(Err(waiting)) => Some(waiting),
            None => None,
        };
        Ok(Taken(self.pool.acquire().await?, Instant::now()))
    }

    /// Of a connection whose statement is through. Any other goes to the pool, which looks after it.
    fn give_back(&self, taken: Taken) {
        if let Some(at_hand) = &self.at_hand {
            at_hand.give_back(taken);
        }
    }
}

impl AtHand {
    /// The one that was used last, or a place among those who wait. Whoever was out for so long that the pool would ask where
    /// it leads goes back.
    fn take(&self) -> Result<Taken, Waiting<'_>> {
        let mut state = self.state();
        state.free.retain(|Taken(_, since)| since.elapsed() < BELIEVED);
        state.free.pop().ok_or_else(|| {
            state.waiting += 1;
            Waiting(self)
        })
    }

    fn give_back(&self, taken: Taken) {
        let mut state = self.state();
        if state.waiting == 0 && !state.closed {
            state.free.push(taken);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Waiting<'a>(&'a AtHand);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting -= 1;
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
            let all: Vec<_> = taken.0.fetch_many(query).try_collect().await?;
            self.give_back(taken);
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
            let one = taken.0.fetch_optional(query).await?;
            self.give_back(taken);
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
        async move { self.take().await?.0.prepare_with(sql, parameters).await }.boxed()
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, sqlx::Error>>
    where
        'c: 'e,
    {
        async move { self.take().await?.0.describe(sql).await }.boxed()
    }
}
