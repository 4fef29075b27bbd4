//! Turns: which webhooks are served next. A row of `webhook_turns` stands for a webhook with pending deliveries that isn't being
//! served. Of each tenant, a few are read that are due: however many receivers of one are dead, they delay no other.

use std::time::Duration;

use chrono::Utc;

use super::{StoredSecrets, Webhook, deliveries::is_first};
use crate::{
    error::{Error, within},
    store::Store,
};

/// A webhook with a delivery that is due.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct DueWebhook {
    #[sqlx(flatten)]
    pub webhook: Webhook,
    #[sqlx(flatten)]
    pub secrets: StoredSecrets,
    /// Its receiver took no message the last time.
    pub is_failing: bool,
}

/// The pending delivery of the webhook `w` that is due first.
macro_rules! first_try {
    () => {
        concat!(
            "SELECT next_try_at FROM webhook_deliveries d WHERE d.webhook_id = w.id AND status = 'pending' AND ",
            is_first!(),
            " ORDER BY next_try_at LIMIT 1"
        )
    };
}

/// The two queues of each tenant with webhooks that wait.
macro_rules! with_queues {
    () => {
        "WITH RECURSIVE tenants (tenant) AS (
             (SELECT tenant FROM webhook_turns ORDER BY tenant LIMIT 1)
             UNION ALL
             SELECT next.tenant FROM tenants CROSS JOIN LATERAL (
                 SELECT tenant FROM webhook_turns t WHERE t.tenant > tenants.tenant ORDER BY t.tenant LIMIT 1) AS next
         ), queues AS (
             SELECT tenant, is_failing FROM tenants CROSS JOIN (VALUES (false), (true)) AS kind (is_failing)
         )"
    };
}

impl Store {
    /// Adds up to `limit` webhooks with pending deliveries that aren't waiting for a turn, in the order of their ids after `after`:
    /// those that were being served by a replica that died, or whose deliveries a release queued that knows no turns. Returns the last
    /// id that was looked at; `None` if there are no others.
    pub async fn restore_turns(&self, after: &str, limit: u32) -> Result<Option<String>, Error> {
        let statement = sqlx::query_scalar(concat!(
            "WITH RECURSIVE waiting (webhook_id, nth) AS (
                 (SELECT webhook_id, 1 FROM webhook_deliveries WHERE status = 'pending' AND webhook_id > $1
                  ORDER BY webhook_id LIMIT 1)
                 UNION ALL
                 SELECT next.webhook_id, nth + 1 FROM waiting CROSS JOIN LATERAL (
                     SELECT webhook_id FROM webhook_deliveries d WHERE status = 'pending' AND d.webhook_id > waiting.webhook_id
                     ORDER BY d.webhook_id LIMIT 1) AS next
                 WHERE nth < $2
             ), restored AS (
                 INSERT INTO webhook_turns AS t (webhook_id, tenant, due_at)
                 SELECT w.id, w.tenant, first.next_try_at FROM waiting JOIN webhooks w ON w.id = webhook_id
                 CROSS JOIN LATERAL (",
            first_try!(),
            ") AS first ORDER BY w.id
                 ON CONFLICT (webhook_id) DO UPDATE SET due_at = excluded.due_at
                     WHERE excluded.due_at < t.due_at AND NOT t.is_failing
             )
             SELECT max(webhook_id) FROM waiting HAVING count(*) = $2"
        ))
        .bind(after)
        .bind(i64::from(limit))
        .fetch_optional(&self.patient);
        within("looking for webhooks without a turn", statement).await
    }

    /// Returns up to `limit` webhooks with due deliveries of each tenant, those that have waited longest, without those that are being
    /// `served`; and as many of those whose receivers fail. Forgets webhooks that were deleted.
    pub async fn due_webhooks(&self, limit: u32, served: &[String]) -> Result<Vec<DueWebhook>, Error> {
        let statement = sqlx::query_as(concat!(
            with_queues!(),
            ", due AS MATERIALIZED (
                 SELECT first.* FROM queues CROSS JOIN LATERAL (
                     SELECT webhook_id, is_failing, due_at FROM webhook_turns t
                     WHERE t.tenant = queues.tenant AND t.is_failing = queues.is_failing AND due_at <= now()
                       AND webhook_id <> ALL ($2)
                     ORDER BY due_at LIMIT $1) AS first
             ), gone AS (
                 DELETE FROM webhook_turns WHERE webhook_id = ANY (ARRAY(
                     SELECT webhook_id FROM due WHERE NOT EXISTS (SELECT FROM webhooks w WHERE w.id = webhook_id)))
             )
             SELECT w.*, is_failing FROM due JOIN webhooks w ON w.id = webhook_id ORDER BY due_at"
        ))
        .bind(i64::from(limit))
        .bind(served)
        .fetch_all(&self.patient);
        within("looking for webhooks with due deliveries", statement).await
    }

    /// Returns the time until the next webhook is due, apart from those that are due now. `None` if none waits.
    pub async fn next_turn(&self) -> Result<Option<Duration>, Error> {
        let statement = sqlx::query_scalar(concat!(
            with_queues!(),
            " SELECT extract(epoch FROM min(first.due_at) - now())::float8
              FROM queues CROSS JOIN LATERAL (
                  SELECT due_at FROM webhook_turns t
                  WHERE t.tenant = queues.tenant AND t.is_failing = queues.is_failing AND due_at > now()
                  ORDER BY due_at LIMIT 1) AS first"
        ))
        .fetch_one(&self.patient);
        let seconds: Option<f64> = within("looking for the next delivery of webhooks", statement).await?;
        Ok(seconds.map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()))
    }

    /// Begins a turn of a webhook: it waits no longer. What is queued from here on lets it wait again.
    pub async fn begin_turn(&self, webhook: &str) -> Result<(), Error> {
        let statement =
            sqlx::query("DELETE FROM webhook_turns WHERE webhook_id = $1").bind(webhook).execute(&self.patient);
        within("beginning a turn of a webhook", statement).await?;
        Ok(())
    }

    /// Ends a turn of a webhook, which waits again if it has pending deliveries.
    pub async fn end_turn(&self, webhook: &str, is_failing: bool) -> Result<(), Error> {
        let statement = sqlx::query(concat!(
            "INSERT INTO webhook_turns AS t (webhook_id, tenant, is_failing, due_at)
             SELECT w.id, w.tenant, $2, first.next_try_at FROM webhooks w CROSS JOIN LATERAL (",
            first_try!(),
            ") AS first WHERE w.id = $1
             ON CONFLICT (webhook_id) DO UPDATE
                 SET is_failing = excluded.is_failing, due_at = least(t.due_at, excluded.due_at)"
        ))
        .bind(webhook)
        .bind(is_failing)
        .execute(&self.patient);
        within("ending a turn of a webhook", statement).await?;
        Ok(())
    }

    /// Postpones the turns of webhooks whose receiver fails, by `pause` up to twice of it. Of their deliveries, those that were queued
    /// `patience` ago are given up, and counted, if that is so by the clocks of the database and of this machine.
    pub async fn postpone_turns(
        &self,
        webhooks: &[String],
        pause: Duration,
        patience: Option<Duration>,
    ) -> Result<u64, Error> {
        let statement = sqlx::query_scalar(
            "WITH dead AS (
                 UPDATE webhook_deliveries SET status = 'dead', ended_at = clock_timestamp(),
                     error = coalesce(error, 'the receiver took no message for other submissions')
                 WHERE webhook_id = ANY ($1) AND status = 'pending' AND queued_at < least(now(), $4) - make_interval(secs => $3)
                 RETURNING id
             ), postponed AS (
                 UPDATE webhook_turns SET is_failing = true,
                     due_at = clock_timestamp() + make_interval(secs => $2 * (1 + random()))
                 WHERE webhook_id = ANY (ARRAY(
                     SELECT webhook_id FROM webhook_turns WHERE webhook_id = ANY ($1) ORDER BY webhook_id FOR UPDATE))
             )
             SELECT count(*) FROM dead",
        )
        .bind(webhooks)
        .bind(pause.as_secs_f64())
        .bind(patience.map(|patience| patience.as_secs_f64()))
        .bind(Utc::now())
        .fetch_one(&self.patient);
        let dead: i64 = within("postponing turns of webhooks", statement).await?;
        Ok(dead.unsigned_abs())
    }
}
