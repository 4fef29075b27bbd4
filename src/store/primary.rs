//! Nothing is read or decided on a standby: what it doesn't know yet looks like what never was. While a fail-over is
//! under way a name or a pooler may lead there.
//!
//! A primary becomes a standby only by a restart, which ends its connections, and a new one is asked when it is made. So it is
//! poolers that need to be asked later, too; a write is refused by a standby anyway. Asking before each statement would double
//! the calls, so a busy pool asks four times a second, and each time while an answer was no.

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

/// A standby says `on` to the second whatever is set; so does a primary that takes no writes, which is being replaced.
const QUESTION: &str = "SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'";

/// Whether this connection leads to the server that takes writes.
pub(super) async fn is_primary(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let row: PgRow = sqlx::raw_sql(QUESTION).fetch_one(connection).await?;
    row.try_get(0)
}

/// How long an answer is believed, by the whole pool.
pub(super) const BELIEVED: Duration = Duration::from_millis(250);
/// Whoever was idle for so long is asked in any case: it may lead nowhere.
const IDLE: Duration = Duration::from_secs(1);
/// How long after a no each connection is asked.
const DOUBTED: Duration = Duration::from_secs(10);

/// What a pool knows of its server. Times are milliseconds of a clock that begins with the pool.
#[derive(Debug)]
struct Belief {
    begun: Instant,
    /// The next connection that is given out after this is asked.
    ask_from: AtomicU64,
    /// Until then each one is.
    doubted_until: AtomicU64,
}

impl Belief {
    fn new() -> Self {
        Self { begun: Instant::now(), ask_from: AtomicU64::new(0), doubted_until: AtomicU64::new(0) }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether a connection is to be asked that was idle for so long.
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

/// Connections of this pool lead to a primary when they are made, and are asked again and again whether they still do: others
/// are closed. This takes the place of the ping that sqlx does itself.
/// `settings` are statements that each of them begins with.
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
    Err(sqlx::Error::Configuration("the server is a standby, or takes no writes".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_pool_asks_now_and_then_and_a_doubted_one_each_time() {
        let (belief, busy) = (Belief::new(), Duration::from_millis(1));
        assert!(belief.is_to_be_asked(busy, 0), "nobody has asked yet");
        belief.answered(true, 0);
        assert!(!belief.is_to_be_asked(busy, 249) && belief.is_to_be_asked(busy, 250));
        assert!(belief.is_to_be_asked(IDLE, 1), "who knows where it leads now");
        belief.answered(false, 300);
        belief.answered(true, 301);
        assert!(belief.is_to_be_asked(busy, 302), "another connection may still lead there");
        belief.answered(true, 10_290);
        assert!(!belief.is_to_be_asked(busy, 10_301));
    }
}
