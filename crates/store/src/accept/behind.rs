//! Moves a sequence that is behind its rows. Sequences are not part of logical replication, and a lagging standby or a restored
//! dump may lack their last steps. The numbers that such a sequence allocates are taken, until it is past the highest row.
//!
//! `setval` requires the UPDATE privilege, which a role that only inserts lacks, so numbers are allocated until they are free.

use chrono::{DateTime, Utc};
use tokio::sync::Mutex;

use super::{Drawn, insert::ACTION};
use crate::{Error, Store, error::within};

/// Numbers that one statement allocates: some hundred milliseconds.
const ROUND: i64 = 1_000_000;

/// The number that the sequence is known to be past. Locked while the sequence is moved, so that a replica moves it once.
#[derive(Debug, Default)]
pub(super) struct Behind(Mutex<i64>);

impl Store {
    /// Returns whether another submission has the number, or the id that contains it.
    pub(super) async fn is_taken(&self, drawn: &Drawn) -> Result<bool, Error> {
        let mut connection = self.connection(ACTION).await?;
        let taken = sqlx::query_scalar("SELECT EXISTS (SELECT FROM submissions WHERE number = $1 OR id = $2)")
            .bind(drawn.number)
            .bind(drawn.id.as_str())
            .fetch_one(&mut *connection);
        within(ACTION, taken).await
    }

    /// Allocates a number above all rows, to replace one that was taken.
    ///
    /// # Errors
    /// The database becomes unavailable. The sequence keeps its progress.
    pub async fn draw_beyond(&self, taken: &Drawn) -> Result<Drawn, Error> {
        let groups = &self.groups.accept;
        let mut free_from = groups.behind.0.lock().await;
        if taken.number < *free_from {
            drop(free_from);
            return self.draw().await;
        }
        // Preallocated ids come from the same range as the taken number.
        groups.spares.clear();
        let mut connection = self.connection(ACTION).await?;
        let mut last = taken.number;
        loop {
            let round = sqlx::query_as(
                "WITH top AS (SELECT coalesce(max(number), 0) AS number FROM submissions), drawn AS MATERIALIZED (
                     SELECT nextval('submission_number') AS number
                     FROM top, generate_series(1, greatest(1, least($2, top.number - $1 + 1)))
                 )
                 SELECT max(drawn.number), max(top.number), clock_timestamp() FROM drawn, top",
            )
            .bind(last)
            .bind(ROUND)
            .fetch_one(&mut *connection);
            let (drawn, top, at): (i64, i64, DateTime<Utc>) = within(ACTION, round).await?;
            tracing::warn!(
                from = last,
                to = drawn,
                highest = top,
                "the sequence of submissions was behind its table: moved"
            );
            if drawn > top {
                *free_from = drawn;
                return Ok(Drawn::new(drawn, at));
            }
            last = drawn;
        }
    }

    /// Moves the sequence of events past all of them.
    pub(super) async fn number_events_beyond(&self) -> Result<(), Error> {
        // One at a time: a caller that waits here finds the sequence moved.
        let _moving = self.groups.accept.behind.0.lock().await;
        let action = "moving the sequence of events";
        let mut connection = self.connection(action).await?;
        loop {
            let round = sqlx::query_as(
                "WITH first AS MATERIALIZED (
                     SELECT nextval(pg_get_serial_sequence('submission_events', 'id')) AS id
                 ), top AS (SELECT coalesce(max(id), 0) AS id FROM submission_events), drawn AS MATERIALIZED (
                     SELECT nextval(pg_get_serial_sequence('submission_events', 'id')) AS id
                     FROM first, top, generate_series(1, greatest(1, least($1, top.id - first.id)))
                 )
                 SELECT max(drawn.id), max(top.id) FROM drawn, top",
            )
            .bind(ROUND)
            .fetch_one(&mut *connection);
            let (drawn, top): (i64, i64) = within(action, round).await?;
            tracing::warn!(to = drawn, highest = top, "the sequence of events was behind its table: moved");
            if drawn >= top {
                return Ok(());
            }
        }
    }
}
