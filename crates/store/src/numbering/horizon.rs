//! The id up to which all events are numbered for good, so that those needn't be searched again. The index of unnumbered events
//! keeps an entry of each event until the next vacuum, and every search has to skip it.

use std::time::Duration;

use tokio::time::Instant;

/// After this time, all events are searched again: the database may have been restored from an older backup.
const BELIEVED: Duration = Duration::from_secs(10);

/// The horizon of one process. A new process has none, and searches all events.
///
/// An id that is allocated after `M` was read is above `M`. An id up to `M` was allocated by a transaction that had written
/// before (one statement inserts the row of a submission and then its event). So that transaction has ended in every snapshot
/// whose oldest transaction is not older than the next transaction of a snapshot taken after that reading. Such a snapshot
/// contains all events up to `M` that will ever exist: if each has its number, `M` is the horizon.
#[derive(Debug, Default)]
pub struct Horizon {
    after: i64,
    candidate: Option<Candidate>,
    /// When all events were last searched.
    begun: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    id: i64,
    /// All transactions that may have allocated ids up to it are older than this one, once it is known.
    settled_by: Option<i64>,
}

/// The result of one statement.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub(super) struct Seen {
    /// An event up to the candidate has no number.
    open: bool,
    /// The oldest transaction that has not ended, and the next one that will begin.
    oldest: i64,
    next: i64,
    /// The highest id, read after both.
    drawn: i64,
}

impl Horizon {
    /// Returns the id after which to search, and the candidate for the next horizon.
    pub(super) fn bounds(&self) -> (i64, i64) {
        (self.after, self.candidate.map_or(self.after, |candidate| candidate.id))
    }

    pub(super) fn take(&mut self, seen: Seen) {
        let now = Instant::now();
        // The sequence of ids has gone back: the next events have lower ones.
        let is_behind = seen.drawn < self.bounds().1;
        if is_behind || self.begun.is_none_or(|begun| now - begun >= BELIEVED) {
            *self = Self { begun: Some(now), ..Self::default() };
        }
        match self.candidate {
            None => self.candidate = Some(Candidate { id: seen.drawn, settled_by: None }),
            Some(Candidate { id, settled_by: None }) => {
                self.candidate = Some(Candidate { id, settled_by: Some(seen.next) });
            }
            Some(Candidate { id, settled_by: Some(transaction) }) if seen.oldest >= transaction && !seen.open => {
                self.after = id;
                self.candidate = None;
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(open: bool, oldest: i64, next: i64, drawn: i64) -> Seen {
        Seen { open, oldest, next, drawn }
    }

    #[tokio::test(start_paused = true)]
    async fn the_horizon_moves_when_all_allocating_transactions_have_ended_and_their_events_are_numbered() {
        let mut horizon = Horizon::default();
        horizon.take(seen(true, 5, 7, 100));
        assert_eq!(horizon.bounds(), (0, 100));
        horizon.take(seen(false, 9, 9, 150));
        assert_eq!(horizon.bounds(), (0, 100), "ids up to 100 may have been drawn by 8");
        horizon.take(seen(false, 8, 12, 200));
        assert_eq!(horizon.bounds(), (0, 100), "8 has not ended");
        horizon.take(seen(true, 9, 12, 200));
        assert_eq!(horizon.bounds(), (0, 100), "one of the events has no number");
        horizon.take(seen(false, 9, 12, 200));
        assert_eq!(horizon.bounds(), (100, 100));
        horizon.take(seen(false, 12, 12, 200));
        assert_eq!(horizon.bounds(), (100, 200));
        tokio::time::advance(BELIEVED).await;
        horizon.take(seen(false, 13, 13, 90));
        assert_eq!(horizon.bounds(), (0, 90), "the database may have been restored in the meantime");
        horizon.take(seen(false, 13, 13, 90));
        horizon.take(seen(false, 13, 13, 90));
        assert_eq!(horizon.bounds(), (90, 90));
        horizon.take(seen(false, 14, 14, 50));
        assert_eq!(horizon.bounds(), (0, 50), "the sequence of ids has gone back");
    }
}
