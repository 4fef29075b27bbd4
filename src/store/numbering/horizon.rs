//! Up to which id all events have their numbers for good, so that nobody needs to look there again. What had no number once
//! stays in the index of those that have none until the next vacuum, and is passed over at each look.

use std::time::Duration;

use tokio::time::Instant;

/// After this it is looked everywhere again: the database may have been brought back from an older copy.
const BELIEVED: Duration = Duration::from_secs(10);

/// What one process knows. A new one knows nothing, and looks everywhere.
///
/// An id that is drawn later than `M` was read is above `M`. One up to `M` was drawn by a transaction that had written before
/// (an event comes after its submission's row, in one statement), so by one that has ended in every snapshot whose oldest
/// transaction is not older than the next one of a snapshot taken after that reading. Such a snapshot shows all events up to `M`
/// that there will ever be: if each has its number, `M` is the horizon.
#[derive(Debug, Default)]
pub struct Horizon {
    after: i64,
    candidate: Option<Candidate>,
    /// When it was looked everywhere.
    begun: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Candidate {
    id: i64,
    /// All transactions that may have drawn ids up to it are older than this one, once it is known.
    settled_by: Option<i64>,
}

/// What one statement saw.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub(super) struct Seen {
    /// Some event up to the candidate has no number.
    open: bool,
    /// The oldest transaction that has not ended, and the next one that begins.
    oldest: i64,
    next: i64,
    /// The highest id, read after both.
    drawn: i64,
}

impl Horizon {
    /// After which id to look, and the candidate for the next horizon.
    pub(super) fn bounds(&self) -> (i64, i64) {
        (self.after, self.candidate.map_or(self.after, |candidate| candidate.id))
    }

    pub(super) fn take(&mut self, seen: Seen) {
        let now = Instant::now();
        if self.begun.is_none_or(|begun| now - begun >= BELIEVED) {
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
    async fn it_moves_when_all_who_drew_have_ended_and_all_they_left_is_numbered() {
        let mut horizon = Horizon::default();
        horizon.take(seen(true, 5, 7, 100));
        assert_eq!(horizon.bounds(), (0, 100));
        horizon.take(seen(false, 9, 9, 150));
        assert_eq!(horizon.bounds(), (0, 100), "ids up to 100 may have been drawn by 8");
        horizon.take(seen(false, 8, 12, 200));
        assert_eq!(horizon.bounds(), (0, 100), "8 has not ended");
        horizon.take(seen(true, 9, 12, 200));
        assert_eq!(horizon.bounds(), (0, 100), "one of them has no number");
        horizon.take(seen(false, 9, 12, 200));
        assert_eq!(horizon.bounds(), (100, 100));
        horizon.take(seen(false, 12, 12, 200));
        assert_eq!(horizon.bounds(), (100, 200));
        tokio::time::advance(BELIEVED).await;
        horizon.take(seen(false, 13, 13, 90));
        assert_eq!(horizon.bounds(), (0, 90), "who knows what became of the database meanwhile");
    }
}
