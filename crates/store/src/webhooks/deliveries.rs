//! Deliveries: which change is sent to which webhook, and what became of it.
//!
//! Events are queued in the order of their numbers, each once for each webhook: the statement that queues them moves the cursor.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::QueryBuilder;

use crate::{
    actor::Actor,
    audit::{Written, push_entries},
    error::{Error, within},
    scoped::Scoped,
    store::Store,
};

/// How long the webhooks of a submission that wasn't accepted are kept: longer than it takes to accept one.
const UNACCEPTED: &str = "interval '1 hour'";
/// How long deliveries are kept: those that arrived, and those that were given up.
const DELIVERED_KEPT: &str = "interval '1 day'";
const DEAD_KEPT: &str = "interval '30 days'";
/// How long an expired webhook is kept, with its deliveries.
const EXPIRED_KEPT: &str = "interval '7 days'";

/// A later try than this was planned while the clock of the database was ahead. Pauses are shorter.
const IMPOSSIBLE: &str = "interval '2 hours'";

/// The condition that no earlier delivery of the submission is pending.
macro_rules! is_first {
    () => {
        "NOT EXISTS (SELECT FROM webhook_deliveries e
                     WHERE e.webhook_id = d.webhook_id AND e.status = 'pending' AND e.submission_id = d.submission_id
                       AND e.sequence < d.sequence)"
    };
}
pub(super) use is_first;

/// What one round queued.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub struct Queued {
    /// Events that were read.
    pub events: i64,
    pub deliveries: i64,
}

/// A delivery, for those who manage its webhook.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct Delivery {
    pub id: i64,
    pub submission_id: String,
    /// The number of the event.
    pub sequence: i64,
    pub attempt: i32,
    /// The state that the event reports.
    pub state: String,
    /// `pending`, `delivered` or `dead`.
    pub status: String,
    pub tries: i32,
    pub queued_at: DateTime<Utc>,
    pub next_try_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    pub http_status: Option<i32>,
    pub error: Option<String>,
}

/// A delivery that is due: no earlier one of its submission is pending.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct DueDelivery {
    pub id: i64,
    pub submission_id: String,
    pub sequence: i64,
    /// The event with what is known of its submission.
    pub event: Value,
    /// How often it was tried.
    pub tries: i32,
}

/// The result of a try that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedDelivery {
    pub http_status: Option<i32>,
    pub error: String,
    /// The pause before the next try.
    pub pause: Duration,
    /// The receiver wants none of it.
    pub is_final: bool,
}

/// What became of a delivery after a try that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It is tried again.
    Pending,
    /// It is given up.
    Dead,
    /// Its webhook was deleted meanwhile.
    Gone,
}

impl Store {
    /// Returns how many events are not queued yet.
    pub async fn events_behind_webhooks(&self) -> Result<i64, Error> {
        let statement = sqlx::query_scalar(
            "SELECT s.last - c.last - CASE WHEN c.last <= s.lost_after THEN s.lost_until - s.lost_after ELSE 0 END
             FROM webhook_cursor c, event_sequence s",
        );
        within("looking for events of webhooks", statement.fetch_one(&self.patient)).await
    }

    /// Queues the deliveries of up to `limit` events after the cursor. Concurrent calls are safe: one of them does nothing.
    ///
    /// A webhook that is stored while the statement runs gets no event of it: these changes were committed before the webhook. If
    /// there is no webhook, the cursor moves to the newest event. A delivery behind one that is tried later is due with it.
    ///
    /// All tenants wait for this statement, so it reads a few rows for each event, whatever is stored beside them. `OFFSET 0`, the sum
    /// with nothing and the order by sequence leave Postgres no other index, in whose order it would walk through all events or through all
    /// that one webhook waits for: workers' connections avoid sorts.
    pub async fn queue_deliveries(&self, limit: u32) -> Result<Queued, Error> {
        let statement = sqlx::query_as(
            "WITH place AS (
                 SELECT last FROM webhook_cursor FOR UPDATE SKIP LOCKED
             ), page AS MATERIALIZED (
                 SELECT e.* FROM place CROSS JOIN LATERAL (
                     SELECT * FROM submission_events WHERE sequence > place.last ORDER BY sequence LIMIT $1
                 ) e WHERE EXISTS (SELECT FROM webhooks)
             ), subject AS MATERIALIZED (
                 SELECT e.sequence, e.attempt AS event_attempt, e.state AS event_state, e.reason AS event_reason,
                     e.message AS event_message, e.at, s.*
                 FROM page e CROSS JOIN LATERAL (SELECT * FROM submissions WHERE id = e.submission_id OFFSET 0) s
             ), hooks AS MATERIALIZED (
                 SELECT * FROM webhooks WHERE submission_id IS NULL
                 UNION ALL
                 SELECT * FROM webhooks WHERE submission_id = ANY (ARRAY(SELECT submission_id FROM page))
             ), moved AS (
                 UPDATE webhook_cursor SET last = greatest(place.last,
                     CASE WHEN (SELECT count(*) FROM page) < $1 THEN (SELECT last FROM event_sequence)
                          ELSE (SELECT max(sequence) FROM page) END)
                 FROM place
             ), queued AS (
                 INSERT INTO webhook_deliveries (webhook_id, submission_id, sequence, next_try_at, event)
                 SELECT w.id, s.id, s.sequence,
                     greatest(clock_timestamp(), (SELECT d.next_try_at FROM webhook_deliveries d
                         WHERE d.webhook_id = w.id AND d.submission_id = s.id AND d.status = 'pending'
                         ORDER BY d.sequence DESC LIMIT 1)),
                     jsonb_strip_nulls(jsonb_build_object(
                     'sequence', s.sequence, 'submissionId', s.id, 'attempt', s.event_attempt, 'state', s.event_state,
                     'previous', (SELECT p.state FROM submission_events p WHERE p.submission_id = s.id AND p.sequence < s.sequence
                                  ORDER BY p.sequence + 0 DESC LIMIT 1),
                     'reason', s.event_reason, 'message', s.event_message, 'at', s.at,
                     'exitCode', CASE WHEN s.attempt = s.event_attempt AND s.state = s.event_state THEN s.exit_code
                                      WHEN s.attempt > s.event_attempt AND a.state = s.event_state THEN a.exit_code END,
                     'name', s.name, 'tenant', s.tenant, 'principal', s.principal, 'owner', s.owner,
                     'namespace', s.namespace, 'labels', s.labels, 'clientId', s.client_id, 'sparkVersion', s.spark_version,
                     'traceContext', s.trace_context,
                     'lineage', CASE WHEN w.format = 'openlineage' THEN jsonb_build_object(
                         'namespace', s.request -> 'sparkProperties' -> 'spark.openlineage.namespace',
                         'jobName', s.request -> 'sparkProperties' -> 'spark.openlineage.appName',
                         'parentNamespace', s.request -> 'sparkProperties' -> 'spark.openlineage.parentJobNamespace',
                         'parentName', s.request -> 'sparkProperties' -> 'spark.openlineage.parentJobName',
                         'parentRunId', s.request -> 'sparkProperties' -> 'spark.openlineage.parentRunId') END))
                 FROM subject s
                 -- Webhooks of the tenant, and those of the installation, which have none.
                 CROSS JOIN LATERAL (VALUES (s.tenant), ('')) AS whose (tenant)
                 JOIN hooks w ON w.tenant = whose.tenant
                 LEFT JOIN LATERAL (
                     SELECT state, exit_code FROM attempts WHERE submission_id = s.id AND attempt = s.event_attempt OFFSET 0
                 ) a ON true
                 WHERE s.sequence > w.since AND w.tenant_gone_at IS NULL
                   AND coalesce(w.expires_at, 'infinity') > clock_timestamp()
                   -- The original tells of what the database was copied with.
                   AND s.number > (SELECT copied_until FROM installation)
                   AND (NOT w.own OR w.principal = s.principal)
                   AND (w.submission_id IS NULL OR w.submission_id = s.id)
                   AND (w.format <> 'openlineage' OR s.event_state NOT IN ('LAUNCHING', 'PENDING', 'KILLING'))
                   AND (w.states = '{}' OR s.event_state = ANY (w.states))
                   AND (w.name_prefix IS NULL OR starts_with(s.name, w.name_prefix))
                   AND (w.owner IS NULL OR w.owner = s.owner)
                   AND (w.namespace IS NULL OR w.namespace = s.namespace)
                   AND s.labels @> w.labels
                 ORDER BY s.sequence
                 RETURNING id, webhook_id, next_try_at
             ), turns AS (
                 INSERT INTO webhook_turns AS t (webhook_id, tenant, due_at)
                 SELECT w.id, w.tenant, min(next_try_at) FROM queued JOIN hooks w ON w.id = webhook_id
                 GROUP BY w.id, w.tenant ORDER BY w.id
                 ON CONFLICT (webhook_id) DO UPDATE SET due_at = excluded.due_at WHERE excluded.due_at < t.due_at
             )
             SELECT (SELECT count(*) FROM page) AS events, (SELECT count(*) FROM queued) AS deliveries",
        )
        .bind(i64::from(limit))
        .fetch_one(&self.patient);
        within("queueing deliveries of webhooks", statement).await
    }

    /// Returns up to `limit` deliveries of a webhook that are due: of each submission, the earliest pending one.
    pub async fn due_deliveries(&self, webhook: &str, limit: u32) -> Result<Vec<DueDelivery>, Error> {
        let statement = sqlx::query_as(concat!(
            "SELECT id, submission_id, sequence, event, tries FROM webhook_deliveries d
                 WHERE webhook_id = $1 AND status = 'pending' AND next_try_at <= now() AND ",
            is_first!(),
            " ORDER BY next_try_at, sequence LIMIT $2"
        ))
        .bind(webhook)
        .bind(i64::from(limit))
        .fetch_all(&self.patient);
        within("reading due deliveries", statement).await
    }

    /// Records that a delivery arrived.
    pub async fn delivered(&self, id: i64, http_status: i32) -> Result<(), Error> {
        let statement = sqlx::query(
            "UPDATE webhook_deliveries SET status = 'delivered', tries = tries + 1, ended_at = clock_timestamp(),
                 http_status = $2, error = NULL
             WHERE id = $1 AND status = 'pending'",
        )
        .bind(id)
        .bind(http_status)
        .execute(&self.patient);
        within("recording a delivery", statement).await?;
        Ok(())
    }

    /// Records a try that failed. Later deliveries of the submission wait, too. A delivery that was queued `patience` ago is given
    /// up, if that is so by the clocks of the database and of this machine, one of which may be ahead.
    pub async fn not_delivered(&self, id: i64, tried: &TriedDelivery, patience: Duration) -> Result<Settled, Error> {
        let statement = sqlx::query_scalar(
            "WITH tried AS (
                 UPDATE webhook_deliveries SET tries = tries + 1, http_status = $2, error = $3,
                     next_try_at = clock_timestamp() + make_interval(secs => $4),
                     status = CASE WHEN $5 OR queued_at < least(now(), $7) - make_interval(secs => $6) THEN 'dead' ELSE status END,
                     ended_at = CASE WHEN $5 OR queued_at < least(now(), $7) - make_interval(secs => $6) THEN clock_timestamp() END
                 WHERE id = $1 AND status = 'pending'
                 RETURNING id, webhook_id, submission_id, status
             ), behind AS (
                 UPDATE webhook_deliveries d SET next_try_at = clock_timestamp() + make_interval(secs => $4)
                 FROM tried t
                 WHERE t.status = 'pending' AND d.webhook_id = t.webhook_id AND d.submission_id = t.submission_id
                   AND d.status = 'pending' AND d.id <> t.id
             )
             SELECT status FROM tried",
        )
        .bind(id)
        .bind(tried.http_status)
        .bind(&tried.error)
        .bind(tried.pause.as_secs_f64())
        .bind(tried.is_final)
        .bind(patience.as_secs_f64())
        .bind(Utc::now())
        .fetch_optional(&self.patient);
        let status: Option<String> = within("recording a delivery that failed", statement).await?;
        Ok(match status.as_deref() {
            Some("dead") => Settled::Dead,
            Some(_) => Settled::Pending,
            None => Settled::Gone,
        })
    }

    /// Deletes up to `limit` of each: old deliveries, deliveries of deleted webhooks, webhooks that expired a week ago, and webhooks of submissions that are gone, once
    /// their deliveries have ended. Returns how many rows that were. The time is the earlier one of the database's and this machine's
    /// clocks, one of which may be ahead. Tries that were planned while the clock of the database was ahead are due.
    pub async fn clean_up_webhooks(&self, limit: u32) -> Result<u64, Error> {
        let statement = format!(
            "WITH old AS (
                 SELECT id FROM webhook_deliveries
                 WHERE status <> 'pending' AND ended_at < least(now(), $2) - {DELIVERED_KEPT}
                   AND (status = 'delivered' OR ended_at < least(now(), $2) - {DEAD_KEPT})
                 ORDER BY ended_at LIMIT $1
             ), orphaned AS (
                 SELECT d.id FROM webhook_deliveries d
                 WHERE status = 'pending' AND NOT EXISTS (SELECT FROM webhooks w WHERE w.id = d.webhook_id) LIMIT $1
             ), due AS (
                 UPDATE webhook_deliveries SET next_try_at = clock_timestamp() WHERE id = ANY (ARRAY(
                     SELECT id FROM webhook_deliveries
                     WHERE status = 'pending' AND next_try_at > greatest(now(), $2) + {IMPOSSIBLE} LIMIT $1
                     FOR NO KEY UPDATE SKIP LOCKED))
             ), turns AS (
                 UPDATE webhook_turns SET due_at = clock_timestamp() WHERE webhook_id = ANY (ARRAY(
                     SELECT webhook_id FROM webhook_turns WHERE due_at > greatest(now(), $2) + {IMPOSSIBLE} LIMIT $1
                     FOR NO KEY UPDATE SKIP LOCKED))
             ), deliveries AS (
                 DELETE FROM webhook_deliveries WHERE id = ANY (ARRAY(SELECT id FROM old UNION SELECT id FROM orphaned))
                 RETURNING 1
             ), needless AS (
                 DELETE FROM webhooks WHERE id = ANY (ARRAY(
                     SELECT w.id FROM webhooks w
                     WHERE submission_id IS NOT NULL AND created_at < least(now(), $2) - {UNACCEPTED}
                       AND NOT EXISTS (SELECT FROM submissions s WHERE s.id = w.submission_id)
                       AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.webhook_id = w.id AND status = 'pending')
                     LIMIT $1))
                 RETURNING 1
             ), expired AS (
                 DELETE FROM webhooks WHERE id = ANY (ARRAY(
                     SELECT id FROM webhooks
                     WHERE submission_id IS NULL AND expires_at < least(now(), $2) - {EXPIRED_KEPT} LIMIT $1))
                 RETURNING 1
             )
             SELECT (SELECT count(*) FROM deliveries) + (SELECT count(*) FROM needless) + (SELECT count(*) FROM expired)"
        );
        let deleted = sqlx::query_scalar(sqlx::AssertSqlSafe(statement))
            .bind(i64::from(limit))
            .bind(Utc::now())
            .fetch_one(&self.patient);
        let deleted: i64 = within("cleaning up deliveries of webhooks", deleted).await?;
        Ok(deleted.unsigned_abs())
    }
}

impl Scoped {
    /// Returns up to `limit` deliveries of a webhook of the scope, the newest first, with ids below `before`. `None` if there is no
    /// such webhook.
    pub async fn deliveries(
        &self,
        webhook: &str,
        status: Option<&str>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Option<Vec<Delivery>>, Error> {
        if self.webhook(webhook).await?.is_none() {
            return Ok(None);
        }
        let action = "listing deliveries of a webhook";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::new(
            "SELECT id, submission_id, sequence, (event ->> 'attempt')::integer AS attempt, event ->> 'state' AS state, status,
                 tries, queued_at, next_try_at, ended_at, http_status, error
             FROM webhook_deliveries WHERE webhook_id = ",
        );
        query.push_bind(webhook);
        if let Some(status) = status {
            query.push(" AND status = ").push_bind(status);
        }
        if let Some(before) = before {
            query.push(" AND id < ").push_bind(before);
        }
        query.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(limit));
        within(action, query.build_query_as().fetch_all(&mut *connection)).await.map(Some)
    }

    /// Queues one delivery of a webhook of the scope again, whatever became of it, or all that were given up. Writes an entry of
    /// the audit, and returns how many there were.
    pub async fn replay_deliveries(
        &self,
        webhook: &str,
        delivery: Option<i64>,
        actor: Option<&Actor>,
    ) -> Result<u64, Error> {
        let action = "queueing deliveries again";
        let mut query = self.select("WITH mine AS (SELECT id AS found, tenant, submission_id", "");
        query.push(" AND id = ").push_bind(webhook);
        query.push(
            "), again AS (
                 UPDATE webhook_deliveries d SET status = 'pending', queued_at = clock_timestamp(),
                     next_try_at = clock_timestamp(), ended_at = NULL
                 FROM mine WHERE webhook_id = found AND ",
        );
        match delivery {
            Some(id) => query.push("status <> 'pending' AND d.id = ").push_bind(id),
            None => query.push("status = 'dead'"),
        };
        query.push(
            " RETURNING d.id), turn AS (
                 INSERT INTO webhook_turns (webhook_id, tenant, due_at)
                 SELECT found, tenant, clock_timestamp() FROM mine WHERE EXISTS (SELECT FROM again)
                 ON CONFLICT (webhook_id) DO UPDATE SET due_at = excluded.due_at, is_failing = false
             ), one AS (
                 SELECT mine.*, (SELECT count(*) FROM again) AS count FROM mine WHERE EXISTS (SELECT FROM again))",
        );
        let entry = "SELECT nullif(tenant, '') AS tenant, submission_id AS id, 'allowed' AS verdict,
            'webhook ' || found || ', ' || count || ' deliveries' AS detail FROM one";
        push_entries(&mut query, actor, "replay-webhook", entry);
        query.push(" SELECT (SELECT count(*) FROM again)").push(self.store.written(actor));
        let mut connection = self.store.connection(action).await?;
        let replayed = query.build_query_as().fetch_one(&mut *connection);
        let (replayed, written): (i64, Written) = within(action, replayed).await.map_err(Error::after_sending)?;
        self.store.pass_on_entries(actor, written);
        Ok(replayed.unsigned_abs())
    }
}
