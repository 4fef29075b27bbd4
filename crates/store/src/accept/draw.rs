//! Allocates ids: in a round trip of its own, or without one for requests that follow others closely.

use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use crate::{
    Error, Store,
    error::{likewise, mark, statement_span, within},
    group_commit::BatchWriter,
};
use sparkgate_metrics::metrics;
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
    fn take(&self) -> Option<Drawn> {
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

const ACTION: &str = "allocating a submission's id";

impl Store {
    /// Allocates an id. An unused id leaves no trace.
    pub async fn draw(&self) -> Result<Drawn, Error> {
        let groups = &self.groups.accept;
        if let Some(spare) = groups.spares.take() {
            return Ok(spare);
        }
        let span = statement_span(ACTION);
        let drawn = groups.drawing.call((), Some(self.patience / 2), || Drawer(self.clone())).await;
        // Whether it was allocated or not, no submission was accepted with it.
        let drawn = drawn
            .unwrap_or_else(|why| Err(Error::Unavailable { action: ACTION, source: io::Error::other(why).into() }));
        mark(&span, &drawn);
        drawn
    }
}

/// Allocates as many ids as there are calls.
struct Drawer(Store);

impl BatchWriter<(), Result<Drawn, Error>> for Drawer {
    async fn write(&self, group: Vec<()>) -> Vec<Result<Drawn, Error>> {
        metrics().group_size.with(["allocate"]).observe(group.len() as f64);
        match self.draw(group.len()).await {
            Ok(numbers) => numbers.into_iter().map(|(number, at)| Ok(Drawn::new(number, at))).collect(),
            Err(error) => group.iter().map(|()| Err(likewise(&error))).collect(),
        }
    }
}

impl Drawer {
    async fn draw(&self, count: usize) -> Result<Vec<(i64, DateTime<Utc>)>, Error> {
        let taken = self.0.to_accept(ACTION).await?;
        let numbers =
            sqlx::query_as("SELECT nextval('submission_number'), clock_timestamp() FROM generate_series(1, $1)")
                .bind(i32::try_from(count).unwrap_or(i32::MAX));
        within(ACTION, taken.read_all(numbers)).await
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
