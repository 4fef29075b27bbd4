//! A sequence that is behind its rows: sequences are not part of logical replication, and a lagging standby or a restored dump
//! may lack their last steps. What it hands out is taken then, until it is past the highest row.
//!
//! `setval` needs the right UPDATE, which a role that only inserts lacks, so numbers are drawn until they are free.

use chrono::{DateTime, Utc};
use tokio::sync::Mutex;

use super::{Drawn, insert::ACTION};
use crate::store::{Error, Store, error::within};

/// Numbers that one statement draws: some hundred milliseconds.
const ROUND: i64 = 1_000_000;

/// Below which number the sequence is known to be no more. Held while it is moved, so that a replica moves it once.
#[derive(Debug, Default)]
pub(super) struct Behind(Mutex<i64>);

impl Store {
    /// Whether another submission has the number, or the id that is made of it.
    pub(super) async fn is_taken(&self, drawn: &Drawn) -> Result<bool, Error> {
        let mut connection = self.connection(ACTION).await?;
        let taken = sqlx::query_scalar("SELECT EXISTS (SELECT FROM submissions WHERE number = $1 OR id = $2)")
            .bind(drawn.number)
            .bind(drawn.id.as_str())
            .fetch_one(&mut *connection);
        within(ACTION, taken).await
    }

    /// Draws a number that is above all rows, instead of one that was taken.
    ///
    /// # Errors
    /// The database went away meanwhile. The sequence stays as far as it got.
    pub async fn draw_beyond(&self, taken: &Drawn) -> Result<Drawn, Error> {
        let groups = &self.groups.accept;
        let mut free_from = groups.behind.0.lock().await;
        if taken.number < *free_from {
            drop(free_from);
            return self.draw().await;
        }
        // They were drawn beside the number that was taken.
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
            tracing::warn!(from = last, to = drawn, highest = top, "the sequence of submissions was behind: moved");
            if drawn > top {
                *free_from = drawn;
                return Ok(Drawn::new(drawn, at));
            }
            last = drawn;
        }
    }

    /// Moves the sequence of events past all of them.
    pub(super) async fn number_events_beyond(&self) -> Result<(), Error> {
        // In turn: who waits here finds it moved.
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
            tracing::warn!(to = drawn, highest = top, "the sequence of events was behind: moved");
            if drawn >= top {
                return Ok(());
            }
        }
    }
}
