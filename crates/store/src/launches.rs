//! Writes of a launch under its claim: that its pod exists, and that all its objects do. Concurrent launches share the
//! statements, which skip rows that other transactions have locked: such a launch writes by itself, and only it waits.

pub(super) mod groups;

use std::{collections::HashMap, slice};

use sqlx::{Row, postgres::PgRow};

use super::{
    claim::UNCLAIMED,
    connections::Connections,
    error::{Error, likewise, mark, statement_span, within},
    figures::WAITED,
    group_commit::{BatchWriter, GroupCommit},
    row::words,
    sealed::{DROPPED, NEEDLESS},
    state_log::LoggedChange,
    store::Store,
};
use groups::Launch;
use sparkgate_metrics::metrics;
use sparkgate_submission::{State, SubmissionId};

/// The launches as rows, with their positions.
const LAUNCHES: &str = "unnest($1::text[], $2::integer[], $3::bigint[], $4::text[]) WITH ORDINALITY
    AS launch (of_id, of_attempt, claim, uid, place)";
/// The condition for rows that they may write.
const GUARD: &str = "s.id = of_id AND s.attempt = of_attempt AND s.claim_epoch = claim
    AND (s.pod_uid IS NULL OR s.pod_uid = uid)";

impl Store {
    /// Records the uid of the pod that was created for an attempt under a claim, and returns the state of the row: a kill may have
    /// been accepted since the claim. `None` if the claim is lost, or if another pod is recorded already.
    pub async fn record_pod(
        &self,
        id: &SubmissionId,
        attempt: i32,
        claim: i64,
        uid: &str,
    ) -> Result<Option<State>, Error> {
        let launch = Launch::new(id, attempt, claim, uid);
        self.write(&self.groups.launches.recording, ("recording a driver pod", "record"), record, launch).await
    }

    /// Moves the attempt to `PENDING`, because all its objects exist, and returns the claim.
    pub(super) async fn launched(&self, id: &SubmissionId, attempt: i32, claim: i64, uid: &str) -> Result<bool, Error> {
        let launch = Launch::new(id, attempt, claim, uid);
        let ending = &self.groups.launches.ending;
        Ok(self.write(ending, ("recording a submission's state", "launch"), end, launch).await?.is_some())
    }

    /// Writes a launch together with others that wait. Returns the state of the row, if it was written.
    async fn write(
        &self,
        group: &GroupCommit<Launch, Result<Option<State>, Error>>,
        (action, name): (&'static str, &'static str),
        statement: fn(&'static str) -> String,
        launch: Launch,
    ) -> Result<Option<State>, Error> {
        let writer = || Writer { store: self.clone(), action, group: name, statement };
        let alone = launch.clone();
        let span = statement_span(action);
        let written = group.call(launch, None, writer).await.unwrap_or_else(|why| Err(Error::unanswered(action, why)));
        mark(&span, &written);
        drop(span);
        if let Some(state) = written? {
            return Ok(Some(state));
        }
        // Another transaction may have locked the row. Only this launch waits for it.
        let states = within(action, states(&statement(""), slice::from_ref(&alone), &self.patient)).await?;
        Ok(states.into_values().next())
    }
}

/// Writes a group, except for launches whose rows are locked.
struct Writer {
    store: Store,
    action: &'static str,
    /// The name of the group commit in the metrics.
    group: &'static str,
    statement: fn(&'static str) -> String,
}

impl BatchWriter<Launch, Result<Option<State>, Error>> for Writer {
    async fn write(&self, all: Vec<Launch>) -> Vec<Result<Option<State>, Error>> {
        metrics().group_size.with([self.group]).observe(all.len() as f64);
        let statement = (self.statement)("SKIP LOCKED");
        match within(self.action, states(&statement, &all, &self.store.patient)).await {
            Ok(states) => (1..).zip(&all).map(|(place, _)| Ok(states.get(&place).copied())).collect(),
            Err(error) => all.iter().map(|_| Err(likewise(&error))).collect(),
        }
    }
}

/// Runs a statement that returns the positions of the launches that it wrote and the states of their rows, and logs the state
/// changes that it made.
async fn states(
    statement: &str,
    all: &[Launch],
    connections: &Connections,
) -> Result<HashMap<i64, State>, sqlx::Error> {
    let rows = sqlx::query(sqlx::AssertSqlSafe(statement))
        .bind(all.iter().map(|one| one.id.as_str()).collect::<Vec<_>>())
        .bind(all.iter().map(|one| one.attempt).collect::<Vec<_>>())
        .bind(all.iter().map(|one| one.claim).collect::<Vec<_>>())
        .bind(all.iter().map(|one| one.uid.as_str()).collect::<Vec<_>>())
        .fetch_all(connections)
        .await?;
    let place = |row: &PgRow| -> Result<(i64, State), sqlx::Error> {
        let place: i64 = row.try_get("place")?;
        if let Ok(from) = row.try_get("was")
            && let Some(launch) = usize::try_from(place).ok().and_then(|place: usize| all.get(place.checked_sub(1)?))
        {
            let tenant = row.try_get("tenant")?;
            log(launch, tenant, from);
            metrics().time_to_pod.observe(row.try_get("waited")?);
        }
        let state = row.try_get::<&str, _>("state")?.parse().map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
        Ok((place, state))
    };
    rows.iter().map(place).collect()
}

fn log(launch: &Launch, tenant: &str, from: &str) {
    let state = State::Pending.as_str();
    let (submission, attempt, from) = (launch.id.as_str(), launch.attempt, Some(from));
    LoggedChange { submission, tenant, attempt, from, state, ..LoggedChange::default() }.log();
}

/// Returns the part of the statement that locks the writable rows of the launches, in the order of every other statement that
/// locks several. `locked` is the clause for rows that other transactions have locked. The order is that of an expression, so
/// that no plan reads all rows in the order of their index.
fn these(and: &str, locked: &str) -> String {
    format!(
        "these AS MATERIALIZED (
             SELECT s.id AS these_id, s.state AS was, uid, place FROM {LAUNCHES} JOIN submissions s ON {GUARD} {and}
             ORDER BY s.number + 0 FOR NO KEY UPDATE OF s {locked}
         )"
    )
}

fn record(locked: &'static str) -> String {
    let these = these("", locked);
    format!("WITH {these} UPDATE submissions SET pod_uid = uid FROM these WHERE id = these_id RETURNING place, state")
}

fn end(locked: &'static str) -> String {
    // A launch that ends during a kill must not undo it; `may_become` prevents that.
    let from = words(State::ALL.into_iter().filter(|from| from.may_become(State::Pending))).join("', '");
    // The state is compared as an expression: otherwise its index would be read for all queued submissions.
    let these = these(&format!("AND s.state || '' IN ('{from}')"), locked);
    format!(
        "WITH {these}, moved AS (
             UPDATE submissions s SET state = 'PENDING', exit_code = NULL, reason = NULL, message = NULL,
                 pod_uid = uid, claimed_by = {UNCLAIMED}, not_before = NULL, failed_tries = 0
             FROM these WHERE s.id = these_id
             RETURNING s.id, s.attempt, s.tenant, was, place, {NEEDLESS} AS needless, {WAITED} AS waited
         ), {DROPPED}, logged AS (
             INSERT INTO submission_events (submission_id, attempt, state) SELECT id, attempt, 'PENDING' FROM moved
         )
         SELECT place, tenant, was, waited, 'PENDING' AS state FROM moved"
    )
}
