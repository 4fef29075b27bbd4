//! Moves a sequence that is behind its rows. Sequences are not part of logical replication, and a lagging standby or a restored
//! dump may lack their last steps. The numbers that such a sequence allocates are taken, until it is past the highest row.
//!
//! `setval` requires the UPDATE privilege, which a role that only inserts lacks, so numbers are allocated until they are free.

use chrono::{DateTime, Utc};

use super::{insert::ACTION, spares::Drawn};
use crate::{
    error::{Error, within},
    store::Store,
};

/// Numbers that one statement allocates: some hundred milliseconds.
const ROUND: i64 = 1_000_000;

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

    /// Moves the sequence of events past all of them, if it is behind: events are numbered in the order of their ids, and the next
    /// event of a submission must not have the id of an earlier one.
    pub async fn move_event_ids(&self) -> Result<(), Error> {
        let action = "moving the sequence of events";
        loop {
            // Ids are nearly in the order of numbers, so the highest is among those of the newest events.
            let round = sqlx::query_as(
                "WITH top AS (
                     SELECT greatest(0, (SELECT max(id) FROM submission_events WHERE sequence IS NULL), (SELECT max(id) FROM (
                         SELECT id FROM submission_events WHERE sequence IS NOT NULL ORDER BY sequence DESC LIMIT 10000
                     ) AS newest)) AS id
                 ), place AS (
                     SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS id FROM submission_events_id_seq
                 ), drawn AS MATERIALIZED (
                     SELECT nextval(pg_get_serial_sequence('submission_events', 'id')) AS id
                     FROM top, place, generate_series(1, least($1, top.id - place.id))
                 )
                 SELECT place.id, top.id, (SELECT max(id) FROM drawn) FROM top, place",
            )
            .bind(ROUND)
            .fetch_one(&self.patient);
            let (from, top, drawn): (i64, i64, Option<i64>) = within(action, round).await?;
            let Some(drawn) = drawn else { return Ok(()) };
            tracing::warn!(from, to = drawn, highest = top, "the sequence of events was behind its table: moved");
        }
    }
}
