//! Ids that were allocated in advance, for requests that follow others closely.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use sparkgate_submission::SubmissionId;

/// An id that no other submission gets, and the time of the database at which it was allocated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drawn {
    pub id: SubmissionId,
    pub number: i64,
    pub at: DateTime<Utc>,
}

impl Drawn {
    pub(super) fn new(number: i64, at: DateTime<Utc>) -> Self {
        Self { id: SubmissionId::new(at, number), number, at }
    }
}

/// A request that follows another this closely needs no round trip. A preallocated id expires after this time, so that ids keep
/// the order of submissions, and the times in them are accurate.
const SOON: Duration = Duration::from_millis(100);

/// Ids that the statements of earlier submissions preallocated. An id that isn't used in time is discarded.
#[derive(Debug, Default)]
pub(super) struct Spares(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    drawn: VecDeque<(Drawn, Instant)>,
    /// When an id was last requested, and whether that was soon after the request before.
    wanted: Option<Instant>,
    soon: bool,
}

impl Spares {
    /// Returns a preallocated id that has not expired.
    pub(super) fn take(&self) -> Option<Drawn> {
        self.with(|kept, now| {
            kept.soon = kept.wanted.replace(now).is_some_and(|before| now - before < SOON);
            while let Some((drawn, at)) = kept.drawn.pop_front() {
                if now - at < SOON {
                    return Some(drawn);
                }
            }
            None
        })
    }

    /// Returns whether more submissions are likely to follow soon.
    pub(super) fn are_wanted(&self) -> bool {
        self.with(|kept, _| kept.soon)
    }

    pub(super) fn clear(&self) {
        self.with(|kept, _| kept.drawn.clear());
    }

    pub(super) fn keep(&self, drawn: impl Iterator<Item = Drawn>) {
        self.with(|kept, now| kept.drawn.extend(drawn.map(|drawn| (drawn, now))));
    }

    fn with<T>(&self, act: impl FnOnce(&mut Kept, Instant) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner), Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn preallocated_ids_serve_requests_that_follow_others_closely() {
        let spares = Spares::default();
        let drawn = |number| Drawn::new(number, DateTime::UNIX_EPOCH);
        assert_eq!((spares.take(), spares.are_wanted()), (None, false), "there was no request before the first");
        tokio::time::advance(SOON).await;
        assert_eq!((spares.take(), spares.are_wanted()), (None, false), "that wasn't soon");
        tokio::time::advance(SOON / 2).await;
        assert_eq!((spares.take(), spares.are_wanted()), (None, true));
        spares.keep([drawn(1), drawn(2)].into_iter());
        assert_eq!(spares.take(), Some(drawn(1)));
        tokio::time::advance(SOON).await;
        assert_eq!((spares.take(), spares.are_wanted()), (None, false), "it has expired");
    }
}
