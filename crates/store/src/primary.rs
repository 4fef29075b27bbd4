//! Keeps connections to the primary. Nothing is read or decided on a standby: data that it doesn't have yet looks as if it
//! never existed. During a failover, a name or a pooler may lead to one.
//!
//! A primary becomes a standby only by a restart, which ends its connections, and a new connection is checked when it is
//! opened. So only connections through poolers need later checks; a standby refuses writes anyway. A check before each
//! statement would double the calls, so a busy pool checks four times a second, and before each statement while a recent check
//! failed.
//!
//! An old primary that was cut off may still accept writes after its standby was promoted. Once a connection of this process leads
//! to the new one, which has a later timeline, connections to the old one are closed.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use futures::{FutureExt, TryStreamExt};
use sqlx::{
    AssertSqlSafe, PgConnection, Row,
    postgres::{PgPoolOptions, PgRow},
};

use super::error::is_outage;

/// A standby returns `on` for the second part, whatever is set; so does a read-only primary, which is being replaced.
const QUESTION: &str = "SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'";

/// The second statement of the check: the server's system identifier and its timeline.
const TIMELINE: &str = "SELECT system_identifier::text, CASE WHEN NOT pg_is_in_recovery()
         THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END FROM pg_control_system()";

/// Returns whether this connection leads to the server that accepts writes, and not to a predecessor of it.
pub(super) async fn is_primary(connection: &mut PgConnection, timelines: &Timelines) -> Result<bool, sqlx::Error> {
    if timelines.unknown.load(Relaxed) {
        let row: PgRow = sqlx::raw_sql(QUESTION).fetch_one(connection).await?;
        return row.try_get(0);
    }
    // Both in one message.
    let both = format!("{QUESTION}; {TIMELINE}");
    let mut answers = sqlx::raw_sql(AssertSqlSafe(both)).fetch(connection);
    let row = answers.try_next().await?.ok_or(sqlx::Error::RowNotFound)?;
    let is_primary: bool = row.try_get(0)?;
    let said = async {
        let row = answers.try_next().await?.ok_or(sqlx::Error::RowNotFound)?;
        // Read to the end: the connection serves others.
        while answers.try_next().await?.is_some() {}
        Ok((row.try_get::<String, _>(0)?, row.try_get::<Option<String>, _>(1)?))
    };
    let (system, timeline) = match said.await {
        Ok(said) => said,
        // A service that is compatible with Postgres may have no write-ahead log of its own.
        Err(error @ sqlx::Error::Database(_)) if !is_outage(&error) => {
            tracing::debug!("the server doesn't tell its timeline: {error}");
            timelines.unknown.store(true, Relaxed);
            return Ok(is_primary);
        }
        Err(error) => return Err(error),
    };
    let timeline = timeline.and_then(|digits| u32::from_str_radix(&digits, 16).ok());
    Ok(is_primary && timeline.is_none_or(|timeline| timelines.is_current(&system, timeline, Instant::now())))
}

/// An earlier timeline is believed if no connection has led to the later one for this long: the data were restored.
const FORGOTTEN: Duration = Duration::from_secs(30);

/// The latest timeline of the database's server that any connection of this process has led to.
#[derive(Debug, Default)]
pub(super) struct Timelines {
    latest: Mutex<Option<Timeline>>,
    /// The server doesn't tell.
    unknown: AtomicBool,
}

#[derive(Debug)]
struct Timeline {
    system: String,
    number: u32,
    /// When a connection led to it last.
    seen: Instant,
}

impl Timelines {
    /// Returns whether a server with this timeline is the latest known one. A server of another origin replaces it.
    fn is_current(&self, system: &str, number: u32, now: Instant) -> bool {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let is_earlier = latest
            .as_ref()
            .is_some_and(|latest| latest.system == system && number < latest.number && now - latest.seen < FORGOTTEN);
        if !is_earlier {
            *latest = Some(Timeline { system: system.to_owned(), number, seen: now });
        }
        !is_earlier
    }
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
pub(super) fn primary_only(options: PgPoolOptions, settings: String, timelines: Arc<Timelines>) -> PgPoolOptions {
    let belief = Arc::new(Belief::new());
    let settings: Arc<str> = settings.into();
    let known = timelines.clone();
    options
        .test_before_acquire(false)
        .after_connect(move |connection, _| made(connection, settings.clone(), known.clone()).boxed())
        .before_acquire(move |connection, of| {
            let (belief, timelines) = (belief.clone(), timelines.clone());
            async move {
                if !belief.is_to_be_asked(of.idle_for, belief.now()) {
                    return Ok(true);
                }
                let primary = is_primary(connection, &timelines).await;
                belief.answered(matches!(primary, Ok(true)), belief.now());
                primary
            }
            .boxed()
        })
}

async fn made(connection: &mut PgConnection, settings: Arc<str>, timelines: Arc<Timelines>) -> Result<(), sqlx::Error> {
    if is_primary(connection, &timelines).await? {
        return sqlx::raw_sql(AssertSqlSafe(settings)).execute(connection).await.map(drop);
    }
    Err(sqlx::Error::Configuration("the server is a standby, read-only, or the primary before a failover".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_an_earlier_timeline_is_refused_while_the_later_one_is_there() {
        let (timelines, now) = (Timelines::default(), Instant::now());
        assert!(timelines.is_current("1", 1, now) && timelines.is_current("1", 2, now));
        assert!(!timelines.is_current("1", 1, now + FORGOTTEN / 2), "the old primary");
        assert!(timelines.is_current("1", 2, now + FORGOTTEN / 2));
        assert!(!timelines.is_current("1", 1, now + FORGOTTEN));
        assert!(timelines.is_current("1", 1, now + FORGOTTEN * 2), "restored from a backup");
        assert!(timelines.is_current("1", 2, now) && timelines.is_current("2", 1, now), "another server");
    }

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
