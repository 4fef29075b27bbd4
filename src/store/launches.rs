//! What a launch writes under its claim: that its pod is there, and that all of it is. Launches that are under way together
//! share the statements, which pass over rows that others have locked: such a launch writes by itself, and only it waits.

use std::{collections::HashSet, slice, time::Duration};

use super::{
    Error, Store,
    claim::NOBODY,
    combine::{Carrier, Combine},
    connections::Connections,
    error::{likewise, within},
    row::words,
};
use crate::submission::{State, SubmissionId};

/// A launch takes some ten milliseconds for each object: this much more isn't seen, and spares most of the statements.
const GAP: Duration = Duration::from_millis(25);
const TOGETHER: usize = 64;

/// The two writes.
#[derive(Debug)]
pub(super) struct Groups {
    recording: Combine<Launch, Result<bool, Error>>,
    ending: Combine<Launch, Result<bool, Error>>,
}

impl Default for Groups {
    fn default() -> Self {
        Self { recording: Combine::paced(GAP, TOGETHER), ending: Combine::paced(GAP, TOGETHER) }
    }
}

/// A launch under its claim, and the pod that it made.
#[derive(Debug, Clone)]
struct Launch {
    id: String,
    attempt: i32,
    claim: i64,
    uid: String,
}

/// The launches as rows, with their places.
const LAUNCHES: &str = "unnest($1::text[], $2::integer[], $3::bigint[], $4::text[]) WITH ORDINALITY
    AS launch (of_id, of_attempt, claim, uid, place)";
/// Which rows they may write.
const GUARD: &str = "s.id = of_id AND s.attempt = of_attempt AND s.claim_epoch = claim
    AND (s.pod_uid IS NULL OR s.pod_uid = uid)";

impl Store {
    /// Keeps the uid of the pod that was made for an attempt under a claim. `false` if the claim is lost, or if another
    /// pod is known already.
    pub async fn record_pod(&self, id: &SubmissionId, attempt: i32, claim: i64, uid: &str) -> Result<bool, Error> {
        let launch = launch(id, attempt, claim, uid);
        self.write(&self.groups.launches.recording, "recording a driver pod", record, launch).await
    }

    /// Moves the attempt to `PENDING`: all its objects are there. The claim is given back with that.
    pub(super) async fn launched(&self, id: &SubmissionId, attempt: i32, claim: i64, uid: &str) -> Result<bool, Error> {
        let launch = launch(id, attempt, claim, uid);
        self.write(&self.groups.launches.ending, "recording a submission's state", end, launch).await
    }

    /// Has a launch written with those that wait beside it.
    async fn write(
        &self,
        group: &Combine<Launch, Result<bool, Error>>,
        action: &'static str,
        statement: fn(&'static str) -> String,
        launch: Launch,
    ) -> Result<bool, Error> {
        let carrier = || Writer { store: self.clone(), action, statement };
        let alone = launch.clone();
        let written =
            group.call(launch, None, carrier).await.unwrap_or_else(|why| Err(Error::unanswered(action, why)))?;
        if written {
            return Ok(true);
        }
        // Another may have its row locked just now. Only this one waits for it.
        let places = within(action, places(&statement(""), slice::from_ref(&alone), &self.patient)).await?;
        Ok(!places.is_empty())
    }
}

/// Writes a group, but for those whose rows are locked.
struct Writer {
    store: Store,
    action: &'static str,
    statement: fn(&'static str) -> String,
}

impl Carrier<Launch, Result<bool, Error>> for Writer {
    async fn carry_out(&self, all: Vec<Launch>) -> Vec<Result<bool, Error>> {
        let statement = (self.statement)("SKIP LOCKED");
        match within(self.action, places(&statement, &all, &self.store.patient)).await {
            Ok(places) => {
                let places: HashSet<i64> = places.into_iter().collect();
                (1..).zip(&all).map(|(place, _)| Ok(places.contains(&place))).collect()
            }
            Err(error) => all.iter().map(|_| Err(likewise(&error))).collect(),
        }
    }
}

/// Runs a statement that answers the places of those that it wrote.
async fn places(statement: &str, all: &[Launch], connections: &Connections) -> Result<Vec<i64>, sqlx::Error> {
    sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
        .bind(all.iter().map(|one| one.id.as_str()).collect::<Vec<_>>())
        .bind(all.iter().map(|one| one.attempt).collect::<Vec<_>>())
        .bind(all.iter().map(|one| one.claim).collect::<Vec<_>>())
        .bind(all.iter().map(|one| one.uid.as_str()).collect::<Vec<_>>())
        .fetch_all(connections)
        .await
}

/// The rows of the launches that may be written, locked in the order of every other statement that locks several. `locked`
/// says what becomes of those that another has locked. The order is that of an expression, so that no plan reads all rows in
/// the order of their index.
fn these(and: &str, locked: &str) -> String {
    format!(
        "these AS MATERIALIZED (
             SELECT s.id AS these_id, uid, place FROM {LAUNCHES} JOIN submissions s ON {GUARD} {and}
             ORDER BY s.number + 0 FOR NO KEY UPDATE OF s {locked}
         )"
    )
}

fn record(locked: &'static str) -> String {
    let these = these("", locked);
    format!("WITH {these} UPDATE submissions SET pod_uid = uid FROM these WHERE id = these_id RETURNING place")
}

fn end(locked: &'static str) -> String {
    // A launch that ends while the kill is under way must not undo it; `may_become` knows.
    let from = words(State::ALL.into_iter().filter(|from| from.may_become(State::Pending))).join("', '");
    // The state as an expression: its index would be read for all that is queued.
    let these = these(&format!("AND s.state || '' IN ('{from}')"), locked);
    format!(
        "WITH {these}, moved AS (
             UPDATE submissions s SET state = 'PENDING', exit_code = NULL, reason = NULL, message = NULL,
                 pod_uid = uid, claimed_by = {NOBODY}, not_before = NULL, failed_tries = 0
             FROM these WHERE s.id = these_id
             RETURNING s.id, s.attempt, place
         ), logged AS (
             INSERT INTO submission_events (submission_id, attempt, state) SELECT id, attempt, 'PENDING' FROM moved
         )
         SELECT place FROM moved"
    )
}

fn launch(id: &SubmissionId, attempt: i32, claim: i64, uid: &str) -> Launch {
    Launch { id: id.to_string(), attempt, claim, uid: uid.to_owned() }
}
