//! What a round decides about.

use std::collections::BTreeMap;

use serde::Deserialize;
use sqlx::types::Json;

use super::states::{BOARD, Board, QueueState, StoredQueueState};
use crate::{
    claim::LONGEST_PAUSE,
    error::{Error, within},
    store::Store,
    unadmitted::{HELD_RANK, IN_QUEUES, WAITS},
};

const ACTION: &str = "reading the queues";

/// What a round reads of a submission that waits, from [`COLUMNS`].
const HEAD: &str =
    "jsonb_build_object('number', number, 'attempt', attempt, 'waited_seconds', waited, 'pods', cost_pods,
    'millicores', cost_millicores, 'memory_bytes', cost_memory_bytes, 'extended', cost_extended, 'reason', reason,
    'message', message)";
const COLUMNS: &str = "number, attempt, cost_pods, cost_millicores, cost_memory_bytes, cost_extended, reason, message,
    greatest(extract(epoch FROM clock_timestamp() - coalesce(queued_at, created_at)), 0) AS waited";
/// The condition for a submission that costs no more than its queue permits.
const FITS: &str = "(cost_pods <= most_pods) IS NOT FALSE AND (cost_millicores <= most_millicores) IS NOT FALSE
    AND (cost_memory_bytes <= most_memory_bytes) IS NOT FALSE
    AND (cost_extended IS NULL OR NOT EXISTS (
        SELECT FROM jsonb_each_text(cost_extended) WHERE value::bigint > (most_extended ->> key)::bigint))";

/// The most that a submission of a queue may cost; one that costs more can't be admitted, and is passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Largest {
    pub queue: String,
    pub pods: Option<i64>,
    pub millicores: Option<i64>,
    pub memory_bytes: Option<i64>,
    /// Extended resources by name.
    pub extended: BTreeMap<String, i64>,
}

/// What runs and who is next in all queues.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueueRound {
    /// An admission is made for this version.
    pub version: i64,
    /// What was learned of the capacity, by resource.
    pub capacity: BTreeMap<String, u64>,
    /// The queues that aren't in their normal state.
    pub states: Vec<StoredQueueState>,
    pub places: Vec<Place>,
}

impl QueueRound {
    /// Returns the state of a queue, if it isn't its normal one.
    pub fn state_of(&self, queue: &str) -> Option<QueueState> {
        self.states.iter().find(|state| state.queue == queue).map(|state| state.state)
    }
}

/// A tenant in a queue: what its admitted submissions reserve, and who is next.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Place {
    pub queue: String,
    pub tenant: String,
    pub submissions: i64,
    pub pods: i64,
    pub millicores: i64,
    pub memory_bytes: i64,
    #[sqlx(json)]
    pub extended: BTreeMap<String, i64>,
    /// How long ago its last admission was.
    pub since_admission: Option<f64>,
    /// In their order.
    #[sqlx(json)]
    pub waiting: Vec<WaitingHead>,
    /// More wait than there are in `waiting`.
    #[sqlx(default)]
    pub has_more: bool,
    /// Of the first that wait, those that cost more than they may.
    #[sqlx(json)]
    pub passed_over: Vec<WaitingHead>,
}

/// A submission that waits.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct WaitingHead {
    pub number: i64,
    pub attempt: i32,
    /// Since its attempt was queued.
    pub waited_seconds: f64,
    pub pods: i64,
    pub millicores: i64,
    pub memory_bytes: i64,
    #[serde(default)]
    pub extended: Option<BTreeMap<String, i64>>,
    /// Why it waits, as it was found last.
    pub reason: Option<String>,
    pub message: Option<String>,
}

/// How many submissions of a tenant wait in a queue.
#[derive(Debug, Clone, Default, PartialEq, sqlx::FromRow)]
pub struct Backlog {
    pub queue: String,
    pub tenant: String,
    /// Not counting held ones.
    pub waiting: i64,
    pub held: i64,
    /// How many seconds the first of those that wait has waited, if that was read.
    #[sqlx(default)]
    pub oldest: Option<f64>,
}

impl Store {
    /// Returns whether any submission waits for its admission.
    pub async fn has_waiting_in_queues(&self) -> Result<bool, Error> {
        let statement =
            format!("SELECT EXISTS (SELECT FROM submissions WHERE {IN_QUEUES} AND queue_rank < {HELD_RANK})");
        let statement = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).fetch_one(&self.patient);
        within(ACTION, statement).await
    }

    /// Returns how many submissions wait, by queue and tenant. Triggers count them, so its time doesn't grow with the backlog.
    pub async fn queue_backlogs(&self) -> Result<Vec<Backlog>, Error> {
        let action = "reading the backlogs of queues";
        let mut connection = self.connection(action).await?;
        let statement = sqlx::query_as(
            "SELECT queue, tenant, sum(waiting)::bigint AS waiting, sum(held)::bigint AS held
             FROM queue_backlogs GROUP BY queue, tenant HAVING sum(waiting) > 0 OR sum(held) > 0 ORDER BY queue, tenant",
        );
        within(action, statement.fetch_all(&mut *connection)).await
    }

    /// Adds up the changes of backlogs that have many, up to `limit` of them. Returns how many there were.
    pub async fn add_up_backlogs(&self, limit: u32) -> Result<u64, Error> {
        let statement = sqlx::query_scalar(
            "WITH these AS (
                 SELECT ctid AS place FROM queue_backlogs
                 WHERE (queue, tenant) IN (SELECT queue, tenant FROM queue_backlogs GROUP BY queue, tenant HAVING count(*) > 10)
                 LIMIT $1 FOR UPDATE SKIP LOCKED
             ), gone AS (
                 DELETE FROM queue_backlogs b USING these WHERE b.ctid = place RETURNING b.queue, b.tenant, b.waiting, b.held
             ), added AS (
                 INSERT INTO queue_backlogs SELECT queue, tenant, sum(waiting), sum(held) FROM gone GROUP BY queue, tenant
                 HAVING sum(waiting) <> 0 OR sum(held) <> 0
             )
             SELECT count(*) FROM gone",
        )
        .bind(i64::from(limit))
        .fetch_one(&self.patient);
        let added: i64 = within("adding up the backlogs of queues", statement).await?;
        Ok(added.unsigned_abs())
    }

    /// Reads what runs in queues, and of each tenant the next submissions, up to `heads`. Held ones, ones that pause after a failure,
    /// ones that are larger than `largest` permits, and the numbers `set_aside` are passed over.
    ///
    /// It reads an index of the live submissions in queues, and of those that wait about as many as it returns: its time doesn't grow with
    /// the backlog. Only those that are passed over cost time, until their cap is raised or they are killed.
    pub async fn queue_round(&self, heads: u32, largest: &[Largest], set_aside: &[i64]) -> Result<QueueRound, Error> {
        // First: what an admission changes afterwards makes another version.
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(BOARD)).fetch_one(&self.patient);
        let (version, Json(capacity), states): Board = within(ACTION, statement).await?;
        let column = |value: fn(&Largest) -> Option<i64>| largest.iter().map(value).collect::<Vec<_>>();
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(places()))
            .bind(i64::from(heads) + 1)
            .bind(largest.iter().map(|one| one.queue.as_str()).collect::<Vec<_>>())
            .bind(column(|one| one.pods))
            .bind(column(|one| one.millicores))
            .bind(column(|one| one.memory_bytes))
            .bind(largest.iter().map(|one| Json(&one.extended)).collect::<Vec<_>>())
            .bind(set_aside)
            .fetch_all(&self.patient);
        let mut places: Vec<Place> = within(ACTION, statement).await?;
        for place in &mut places {
            place.has_more = place.waiting.len() > heads as usize;
            place.waiting.truncate(heads as usize);
        }
        Ok(QueueRound { version, capacity, states: states.0, places })
    }
}

/// Returns the statement. The queues and tenants are found one after the other in the index; the rest is read for each of them.
///
/// An admitted submission reserves what its pods request, as far as they were seen, and else what was computed when it was accepted. Of
/// executors, the larger counts: more may come. If the queue counts only those that are there, the computed number counts until the first
/// is seen.
fn places() -> String {
    let due = format!(
        "{IN_QUEUES} AND s.queue = pairs.queue AND s.tenant = pairs.tenant AND queue_rank < {HELD_RANK} AND {WAITS}
         AND number <> ALL ($7) AND (not_before IS NULL OR not_before <= clock_timestamp()
             OR not_before > clock_timestamp() + make_interval(secs => {LONGEST_PAUSE}))"
    );
    format!(
        "WITH RECURSIVE pairs (queue, tenant) AS (
             (SELECT queue, tenant FROM submissions WHERE {IN_QUEUES} ORDER BY queue, tenant LIMIT 1)
             UNION ALL
             SELECT next.queue, next.tenant FROM pairs CROSS JOIN LATERAL (
                 SELECT queue, tenant FROM submissions s
                 WHERE {IN_QUEUES} AND (s.queue, s.tenant) > (pairs.queue, pairs.tenant)
                 ORDER BY queue, tenant LIMIT 1) AS next
         )
         SELECT pairs.queue, pairs.tenant, running.*, waiting.waiting, passed_over.passed_over,
             (SELECT extract(epoch FROM clock_timestamp() - max(admitted_at))::float8 FROM queue_admissions a
              WHERE a.queue = pairs.queue AND a.tenant = pairs.tenant) AS since_admission
         FROM pairs LEFT JOIN LATERAL (
             SELECT pods AS most_pods, millicores AS most_millicores, memory_bytes AS most_memory_bytes, extended AS most_extended
             FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::jsonb[])
                 AS largest (of_queue, pods, millicores, memory_bytes, extended)
             WHERE of_queue = pairs.queue LIMIT 1
         ) AS largest ON true
         CROSS JOIN LATERAL (
             SELECT count(*) AS submissions, coalesce(sum(pods), 0)::bigint AS pods,
                 coalesce(sum(driver_millicores + millicores), 0)::bigint AS millicores,
                 coalesce(sum(driver_memory_bytes + memory_bytes), 0)::bigint AS memory_bytes,
                 (SELECT coalesce(jsonb_object_agg(name, amount), '{{}}') FROM (
                     SELECT key AS name, sum(value::bigint) AS amount
                     FROM submissions s CROSS JOIN LATERAL jsonb_each_text(s.cost_extended)
                     WHERE {IN_QUEUES} AND s.queue = pairs.queue AND s.tenant = pairs.tenant AND queue_rank IS NULL
                       AND (admitted_at IS NOT NULL OR pod_uid IS NOT NULL) AND cost_extended IS NOT NULL
                     GROUP BY key) AS of_each) AS extended
             FROM (
                 SELECT coalesce(pod_millicores, cost_driver_millicores) AS driver_millicores,
                     coalesce(pod_memory_bytes, cost_driver_memory_bytes) AS driver_memory_bytes,
                     CASE WHEN cost_grows AND every > 0 THEN 1 + live ELSE greatest(cost_pods, 1 + live) END AS pods,
                     CASE WHEN cost_grows AND every > 0 THEN seen_millicores
                         ELSE greatest(cost_millicores - cost_driver_millicores, seen_millicores) END AS millicores,
                     CASE WHEN cost_grows AND every > 0 THEN seen_memory_bytes
                         ELSE greatest(cost_memory_bytes - cost_driver_memory_bytes, seen_memory_bytes) END AS memory_bytes
                 FROM submissions s CROSS JOIN LATERAL (
                     SELECT count(*) AS every, count(*) FILTER (WHERE is_live) AS live,
                         coalesce(sum(pod_millicores) FILTER (WHERE is_live), 0) AS seen_millicores,
                         coalesce(sum(pod_memory_bytes) FILTER (WHERE is_live), 0) AS seen_memory_bytes
                     FROM (SELECT e.pod_millicores, e.pod_memory_bytes, e.state IN ('UNKNOWN', 'PENDING', 'RUNNING') AS is_live
                           FROM executors e
                           WHERE (s.cost_grows OR s.executors_pending + s.executors_running > 0)
                             AND e.submission_id = s.id AND e.attempt = s.attempt) AS of_driver
                 ) AS seen
                 WHERE {IN_QUEUES} AND s.queue = pairs.queue AND s.tenant = pairs.tenant AND queue_rank IS NULL
                   AND (admitted_at IS NOT NULL OR pod_uid IS NOT NULL)
             ) AS admitted
         ) AS running
         CROSS JOIN LATERAL (
             SELECT coalesce(jsonb_agg({HEAD}), '[]') AS waiting
             FROM (SELECT {COLUMNS} FROM submissions s WHERE {due} AND {FITS} ORDER BY queue_rank LIMIT $1) AS next
         ) AS waiting
         CROSS JOIN LATERAL (
             SELECT coalesce(jsonb_agg({HEAD}), '[]') AS passed_over
             FROM (SELECT {COLUMNS} FROM submissions s
                   WHERE {due} AND (coalesce(most_pods, most_millicores, most_memory_bytes) IS NOT NULL OR most_extended <> '{{}}')
                   ORDER BY queue_rank LIMIT $1) AS first
             WHERE NOT ({FITS})
         ) AS passed_over"
    )
}
