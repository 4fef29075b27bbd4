//! Folds denials: a principal that is denied again and again must not fill the disk of the database, whose audit the gateway can't
//! delete. The first denials of a period have entries, and the others together have one with their number.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The period, and how many denials of a principal have entries in it, for each tenant that they are about.
pub(super) const PERIOD: Duration = Duration::from_secs(60);
const WRITTEN: u32 = 20;
/// How many principals are counted before those of past periods are forgotten.
const IDLE: usize = 1000;

/// The denials of this replica, by principal and tenant.
#[derive(Debug, Default)]
pub(super) struct Folds(Mutex<HashMap<Key, Period>>);

type Key = (String, Option<String>);

#[derive(Debug)]
struct Period {
    began: Instant,
    written: u32,
    folded: u32,
}

/// What becomes of a denial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Folded {
    /// It has an entry of its own.
    Written,
    /// It is the first of those that share an entry, which is written after [`PERIOD`].
    First,
    Counted,
}

impl Folds {
    /// Counts a denial.
    pub(super) fn count(&self, principal: &str, tenant: Option<&str>) -> Folded {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() > IDLE {
            all.retain(|_, period| period.folded > 0 || period.began.elapsed() < PERIOD);
        }
        let new = || Period { began: Instant::now(), written: 0, folded: 0 };
        let period = all.entry((principal.to_owned(), tenant.map(str::to_owned))).or_insert_with(new);
        if period.folded == 0 && period.began.elapsed() >= PERIOD {
            *period = new();
        }
        if period.folded == 0 && period.written < WRITTEN {
            period.written += 1;
            return Folded::Written;
        }
        period.folded = period.folded.saturating_add(1);
        if period.folded == 1 { Folded::First } else { Folded::Counted }
    }

    /// Begins another period, and returns how many denials of the last one share an entry.
    pub(super) fn end(&self, principal: &str, tenant: Option<&str>) -> u32 {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&(principal.to_owned(), tenant.map(str::to_owned))).map_or(0, |period| period.folded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn denials_beyond_some_share_an_entry_with_their_number() {
        let folds = Folds::default();
        let deny = || folds.count("corp:mallory", Some("red"));
        assert!((0..WRITTEN).all(|_| deny() == Folded::Written));
        assert_eq!(deny(), Folded::First);
        assert!((0..100).all(|_| deny() == Folded::Counted));
        assert_eq!(folds.count("corp:mallory", Some("blue")), Folded::Written, "another tenant sees its own");
        assert_eq!(folds.count("corp:alice", Some("red")), Folded::Written);
        tokio::time::advance(PERIOD).await;
        assert_eq!(folds.end("corp:mallory", Some("red")), 101);
        assert_eq!(deny(), Folded::Written);
    }

    #[tokio::test(start_paused = true)]
    async fn those_of_past_periods_are_forgotten() {
        let folds = Folds::default();
        (0..=IDLE).for_each(|n| assert_eq!(folds.count(&format!("corp:{n}"), None), Folded::Written));
        tokio::time::advance(PERIOD).await;
        folds.count("corp:new", None);
        assert_eq!(folds.0.lock().unwrap().len(), 1);
    }
}
