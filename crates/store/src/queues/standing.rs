//! Where a submission stands in its queue: a part of its document.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use sqlx::{Postgres, QueryBuilder};

use super::states::QueueState;
use crate::{
    error::{Error, within},
    store::Store,
    unadmitted::{HELD_RANK, IN_QUEUES, UNADMITTED},
};
use sparkgate_submission::{SubmissionId, queues::History};

/// How many submissions ahead of another one are counted.
const COUNTED: i64 = 10_000;
/// How many are counted for each row of a list.
pub const COUNTED_IN_LISTS: u32 = 100;
/// How many of the last admissions an estimate is made of.
const OBSERVED: i64 = 100;

/// Where a submission stands that waits for its admission, or, without a queue, for the end of a pause between two attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueStanding {
    /// How many of its tenant are admitted before it; `None` if there are more than ten thousand.
    pub ahead: Option<u32>,
    /// The state of the queue, if it isn't its normal one.
    pub state: Option<QueueState>,
    /// Until then it is neither admitted nor launched: the pause between two attempts.
    pub due: Option<DateTime<Utc>>,
    /// The last admissions of its tenant in the queue.
    pub history: History,
}

/// The standing as one column: each column of a row costs, also if it is empty.
#[derive(Deserialize)]
pub(crate) struct StoredStanding {
    ahead: i64,
    state: Option<QueueState>,
    due: Option<DateTime<Utc>>,
    admissions: u32,
    seconds: Option<f64>,
    deviation: Option<f64>,
    age: Option<f64>,
}

impl From<StoredStanding> for QueueStanding {
    fn from(stored: StoredStanding) -> Self {
        let StoredStanding { ahead, state, due, admissions, seconds, deviation, age } = stored;
        let known = |value: Option<f64>| value.unwrap_or_default();
        let history = History { admissions, seconds: known(seconds), deviation: known(deviation), age: known(age) };
        Self { ahead: u32::try_from(ahead).ok().filter(|_| ahead <= COUNTED), state, due, history }
    }
}

/// Appends a join with the column `standing` of the row `s`, a [`StoredStanding`]. For a submission that neither waits in a queue nor pauses, it
/// reads nothing.
pub(crate) fn push_standing(query: &mut QueryBuilder<Postgres>) {
    query.push(format_args!(
        " LEFT JOIN LATERAL (
             SELECT jsonb_build_object('ahead', (SELECT count(*) FROM (
                     SELECT FROM submissions w WHERE {IN_QUEUES} AND w.queue = s.queue AND w.tenant = s.tenant
                       AND w.queue_rank < s.queue_rank LIMIT {COUNTED} + 1) AS before),
                 'state', (SELECT q.state FROM queue_states q WHERE q.queue = s.queue),
                 'due', CASE WHEN s.not_before > clock_timestamp() THEN s.not_before END,
                 'admissions', admissions, 'seconds', seconds, 'deviation', deviation, 'age', age) AS standing
             FROM (
                 SELECT count(gap) AS admissions, stddev_samp(gap)::float8 AS deviation,
                     extract(epoch FROM clock_timestamp() - min(admitted_at))::float8 AS age,
                     (coalesce(sum(gap), 0) + greatest(0, extract(epoch FROM clock_timestamp()
                         - greatest(max(admitted_at), (
                             SELECT coalesce(w.queued_at, w.created_at) FROM submissions w
                             WHERE {IN_QUEUES} AND w.queue = s.queue AND w.tenant = s.tenant AND w.queue_rank <= s.queue_rank
                             ORDER BY w.queue_rank LIMIT 1)))))::float8 AS seconds
                 FROM (
                     SELECT admitted_at, CASE WHEN waited_seconds >= gap THEN gap END AS gap
                     FROM (
                         SELECT admitted_at, waited_seconds,
                             extract(epoch FROM admitted_at - lead(admitted_at) OVER (ORDER BY admitted_at DESC)) AS gap
                         FROM (SELECT admitted_at, waited_seconds FROM queue_admissions a
                               WHERE a.queue = s.queue AND a.tenant = s.tenant
                               ORDER BY admitted_at DESC LIMIT {OBSERVED}) AS last) AS gaps) AS busy) AS history
             WHERE s.queue_rank < {HELD_RANK} AND s.claimed_by = {UNADMITTED}
                OR s.queue IS NULL AND s.state = 'QUEUED' AND s.attempt > 1 AND s.failed_tries = 0
                   AND s.not_before > clock_timestamp()) AS standings ON true"
    ));
}

impl Store {
    /// Returns how many submissions of its tenant are admitted before each of these. Those that don't wait in a queue have no number, and
    /// more than [`COUNTED_IN_LISTS`] aren't counted.
    pub async fn queue_positions(&self, ids: &[&str]) -> Result<HashMap<SubmissionId, u32>, Error> {
        let action = "reading the places of submissions in queues";
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT s.id, (SELECT count(*) FROM (
                     SELECT FROM submissions w WHERE {IN_QUEUES} AND w.queue = s.queue AND w.tenant = s.tenant
                       AND w.queue_rank < s.queue_rank LIMIT {COUNTED_IN_LISTS} + 1) AS before)
             FROM submissions s
             WHERE s.id = ANY($1) AND s.queue_rank IS NOT NULL AND s.held_at IS NULL AND s.claimed_by = {UNADMITTED}"
        )))
        .bind(ids);
        let mut connection = self.connection(action).await?;
        let found: Vec<(String, i64)> = within(action, statement.fetch_all(&mut *connection)).await?;
        let read = |(id, ahead): (String, i64)| Some((id.parse().ok()?, u32::try_from(ahead).ok()?));
        Ok(found.into_iter().filter_map(read).collect())
    }
}
