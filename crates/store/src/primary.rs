//! Keeps connections to the primary. Nothing is read or decided on a standby: data that it doesn't have yet looks as if it
//! never existed. During a failover, a name or a pooler may lead to one.
//!
//! A primary becomes a standby only by a restart, which ends its connections, and a new connection is checked when it is
//! opened. So only connections through poolers need later checks; a standby refuses writes anyway. A check before each
//! statement would double the calls, so a busy pool checks four times a second, and before each statement while a recent check
//! failed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use futures::FutureExt;
use sqlx::{
    AssertSqlSafe, PgConnection, Row,
    postgres::{PgPoolOptions, PgRow},
};

/// A standby returns `on` for the second part, whatever is set; so does a read-only primary, which is being replaced.
const QUESTION: &str = "SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'";

/// Returns whether this connection leads to the server that accepts writes.
pub(super) async fn is_primary(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let row: PgRow = sqlx::raw_sql(QUESTION).fetch_one(connection).await?;
    row.try_get(0)
}

/// How long a check is valid, for the whole pool.
pub(super) const BELIEVED: Duration = Duration::from_millis(250);
/// A connection that was idle for this long is always checked: its server may have changed.
const IDLE: Duration = Duration::from_secs(1);
/// For this long after a failed check, each connection is checked.
const DOUBTED: Duration = Duration::from_secs(10);

/// The last checks of a pool. Times are milliseconds since the creation of the pool.
#[derive(Debug)]
struct Belief {
    begun: Instant,
    /// The next connection that is acquired after this time is checked.
    ask_from: AtomicU64,
    /// Until this time, each connection is checked.
    doubted_until: AtomicU64,
}

impl Belief {
    fn new() -> Self {
        Self { begun: Instant::now(), ask_from: AtomicU64::new(0), doubted_until: AtomicU64::new(0) }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns whether a connection that was idle for this long has to be checked.
    fn is_to_be_asked(&self, idle_for: Duration, now: u64) -> bool {
        idle_for >= IDLE || now < self.doubted_until.load(Relaxed) || now >= self.ask_from.load(Relaxed)
    }

    fn answered(&self, primary: bool, now: u64) {
        let after = |time: Duration| now + u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        if primary {
            self.ask_from.store(after(BELIEVED), Relaxed);
        } else {
            self.doubted_until.store(after(DOUBTED), Relaxed);
        }
    }
}

/// Configures a pool whose connections lead to a primary when they are opened and are checked repeatedly; others are closed.
/// This replaces sqlx's own ping. `settings` are statements that run on each new connection.
pub(super) fn primary_only(options: PgPoolOptions, settings: String) -> PgPoolOptions {
    let belief = Arc::new(Belief::new());
    let settings: Arc<str> = settings.into();
    options
        .test_before_acquire(false)
        .after_connect(move |connection, _| made(connection, settings.clone()).boxed())
        .before_acquire(move |connection, known| {
            let belief = belief.clone();
            async move {
                if !belief.is_to_be_asked(known.idle_for, belief.now()) {
                    return Ok(true);
                }
                let primary = is_primary(connection).await;
                belief.answered(matches!(primary, Ok(true)), belief.now());
                primary
            }
            .boxed()
        })
}

async fn made(connection: &mut PgConnection, settings: Arc<str>) -> Result<(), sqlx::Error> {
    if is_primary(connection).await? {
        return sqlx::raw_sql(AssertSqlSafe(settings)).execute(connection).await.map(drop);
    }
    Err(sqlx::Error::Configuration("the server is a standby, or read-only".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_pool_checks_periodically_and_a_doubted_one_each_time() {
        let (belief, busy) = (Belief::new(), Duration::from_millis(1));
        assert!(belief.is_to_be_asked(busy, 0), "no check yet");
        belief.answered(true, 0);
        assert!(!belief.is_to_be_asked(busy, 249) && belief.is_to_be_asked(busy, 250));
        assert!(belief.is_to_be_asked(IDLE, 1), "an idle connection may lead elsewhere now");
        belief.answered(false, 300);
        belief.answered(true, 301);
        assert!(belief.is_to_be_asked(busy, 302), "another connection may still lead there");
        belief.answered(true, 10_290);
        assert!(!belief.is_to_be_asked(busy, 10_301));
    }
}
