//! The order in which all changes are told: events get their numbers after their commit, from one transaction after
//! another. So whoever reads on from a number misses none (`ARCHITECTURE.md`, "Events").

use sqlx::{Postgres, Transaction};

use super::{Error, Store, error::within};

/// Of the advisory lock under which events are numbered: "spkevent" as a number, nothing more.
const LOCK: i64 = 0x7370_6b65_7665_6e74;
/// Events that one transaction numbers at the most.
const ROUND: i64 = 1000;
/// Whatever the server's default is: each statement has to see what was committed before it began.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// How far the numbers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// The highest that was given; 0 before the first.
    pub last: i64,
    /// There are committed events that have none yet.
    pub more: bool,
}

impl Store {
    /// How far the numbers are, for workers.
    pub async fn numbered(&self) -> Result<Numbered, Error> {
        let statement = sqlx::query_as(
            "SELECT last, EXISTS (SELECT FROM submission_events WHERE sequence IS NULL) FROM event_sequence",
        )
        .fetch_one(&self.patient);
        let (last, more) = within("looking for new events", statement).await?;
        Ok(Numbered { last, more })
    }

    /// The highest number that was given, for requests.
    pub async fn last_number(&self) -> Result<i64, Error> {
        let action = "reading the number of the newest event";
        let mut connection = self.connection(action).await?;
        within(action, sqlx::query_scalar("SELECT last FROM event_sequence").fetch_one(&mut *connection)).await
    }

    /// Numbers up to 1000 committed events, in the order of their ids, and tells how many. Does nothing while somebody
    /// else is at it.
    pub async fn number_events(&self) -> Result<u64, Error> {
        let action = "numbering new events";
        let mut transaction = within(action, self.patient.begin_with(BEGIN)).await?;
        // A statement of its own: the next one sees what the last holder of the lock has committed.
        let lock = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1)").bind(LOCK);
        if !within(action, lock.fetch_one(&mut *transaction)).await? {
            return Ok(0);
        }
        let count = number(action, &mut transaction).await?;
        within(action, transaction.commit()).await?;
        Ok(count)
    }
}

async fn number(action: &'static str, transaction: &mut Transaction<'_, Postgres>) -> Result<u64, Error> {
    // What is being deleted is waited for, so that no number is given to what isn't there.
    let statement = sqlx::query(
        "WITH unnumbered AS MATERIALIZED (
             SELECT id FROM submission_events WHERE sequence IS NULL ORDER BY id LIMIT $1 FOR NO KEY UPDATE
         ), places AS (
             SELECT id, row_number() OVER (ORDER BY id) AS place FROM unnumbered
         ), start AS (
             UPDATE event_sequence SET last = last + (SELECT count(*) FROM unnumbered)
             RETURNING last - (SELECT count(*) FROM unnumbered) AS before
         )
         UPDATE submission_events e SET sequence = before + place FROM places, start WHERE e.id = places.id",
    )
    .bind(ROUND)
    .execute(&mut **transaction);
    Ok(within(action, statement).await?.rows_affected())
}
