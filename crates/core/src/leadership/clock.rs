//! Decides whether the clock of the database is trusted for actions that can't be undone: kills after a timeout, and deletion.
//!
//! One clock can't detect that it jumped, but two can: this machine's clock is compared with the database's. A small difference
//! is normal. A large one means that one of the two is wrong, perhaps since a moment ago (a failover to another machine, a
//! clock that was set): it is believed once it has stayed the same for a while. Until then, actions that are due wait, which
//! does no harm.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::Instant;

use sparkgate_common::error::Error;
use sparkgate_store::Store;

/// Clocks that are synchronized by NTP differ by less.
const NEAR: TimeDelta = TimeDelta::seconds(60);
/// How long a larger difference has to stay the same.
const CONFIRMED: Duration = Duration::from_secs(600);
/// Interval of the warning while actions wait.
const SAID: Duration = Duration::from_secs(60);

/// The clock of the database, compared with this machine's.
#[derive(Debug)]
pub struct DatabaseClock {
    store: Store,
    /// The current large difference between the clocks, if there is one.
    difference: Judge,
}

/// Judges the differences between the clocks.
#[derive(Debug, Default)]
struct Judge(Mutex<Option<Difference>>);

/// A large difference between the clocks.
#[derive(Debug, Clone, Copy)]
struct Difference {
    /// How far the database's clock is ahead.
    ahead: TimeDelta,
    /// When it was first observed, by this process's monotonic clock.
    since: Instant,
    said: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Believed,
    Doubted {
        /// The next warning is due.
        say: bool,
    },
}

impl Judge {
    fn judge(&self, ahead: TimeDelta, now: Instant) -> Verdict {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ahead.abs() < NEAR {
            *known = None;
            return Verdict::Believed;
        }
        let mut seen = known.filter(|known| (ahead - known.ahead).abs() < NEAR).unwrap_or(Difference {
            ahead,
            since: now,
            said: None,
        });
        let confirmed = now - seen.since >= CONFIRMED;
        let say = seen.said.is_none_or(|said| now - said >= SAID);
        if say {
            seen.said = Some(now);
        }
        *known = Some(seen);
        if confirmed { Verdict::Believed } else { Verdict::Doubted { say } }
    }
}

impl DatabaseClock {
    pub fn new(store: Store) -> Self {
        Self { store, difference: Judge::default() }
    }

    /// Returns until when the clock of the database is believed, or `None` while it is doubted. In that case, `what` waits; the
    /// warning names it.
    ///
    /// # Errors
    /// The database doesn't answer.
    pub async fn believed_until(&self, what: &str) -> Result<Option<DateTime<Utc>>, Error> {
        let database = self.store.now().await?;
        let ahead = database - Utc::now();
        match self.difference.judge(ahead, Instant::now()) {
            Verdict::Believed => Ok(Some(database + NEAR)),
            Verdict::Doubted { say } => {
                if say {
                    let ahead = ahead.num_seconds();
                    tracing::warn!(
                        database_ahead_seconds = ahead,
                        "the clocks of the database and of this machine differ: {what} wait until they agree, or until \
                         this difference has stayed the same for {CONFIRMED:?}"
                    );
                }
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const QUIET: Verdict = Verdict::Doubted { say: false };
    const LOUD: Verdict = Verdict::Doubted { say: true };

    fn hours(hours: i64) -> TimeDelta {
        TimeDelta::hours(hours)
    }

    #[test]
    fn clocks_that_agree_are_believed() {
        let (clock, now) = (Judge::default(), Instant::now());
        for seconds in [0, 59, -59] {
            assert_eq!(clock.judge(TimeDelta::seconds(seconds), now), Verdict::Believed);
        }
    }

    #[test]
    fn a_clock_jump_is_doubted_for_ten_minutes() {
        let (clock, jumped) = (Judge::default(), Instant::now());
        assert_eq!(clock.judge(hours(2), jumped), LOUD);
        assert_eq!(clock.judge(hours(2), jumped + MINUTE / 2), QUIET);
        assert_eq!(clock.judge(hours(2) + TimeDelta::seconds(59), jumped + MINUTE), LOUD, "once a minute");
        assert_eq!(clock.judge(hours(2), jumped + MINUTE * 10 - Duration::from_secs(1)), LOUD);
        assert_eq!(clock.judge(hours(2), jumped + MINUTE * 10), Verdict::Believed);
        assert_eq!(clock.judge(hours(3), jumped + MINUTE * 11), LOUD, "another jump");
        assert_eq!(clock.judge(hours(2), jumped + MINUTE * 12), LOUD, "and another");
        assert_eq!(clock.judge(TimeDelta::zero(), jumped + MINUTE * 13), Verdict::Believed);
        assert_eq!(clock.judge(hours(2), jumped + MINUTE * 24), LOUD, "the confirmation has expired");
    }

    #[test]
    fn a_clock_that_goes_back_is_doubted_too() {
        let (clock, jumped) = (Judge::default(), Instant::now());
        assert_eq!(clock.judge(hours(-1), jumped), LOUD);
        assert_eq!(clock.judge(hours(-1), jumped + CONFIRMED), Verdict::Believed);
    }
}
