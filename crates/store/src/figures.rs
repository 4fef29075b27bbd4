//! What metrics say of the rows and of the connections.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::{
    connections::Connections,
    error::{Error, within},
    queues::Backlog,
    store::Store,
    unadmitted::{UNADMITTED, WAITS},
};

/// How many seconds an attempt has waited: since its submission was accepted, since the end of the attempt before, or since its queue
/// admitted it.
pub(super) const WAITED: &str =
    "extract(epoch FROM clock_timestamp() - greatest(admitted_at, coalesce(queued_at, created_at)))::float8";
/// How many seconds an attempt has waited for its queue.
pub(super) const QUEUED_FOR: &str =
    "greatest(extract(epoch FROM clock_timestamp() - coalesce(queued_at, created_at)), 0)::float8";
/// How many seconds ago a submission was accepted.
pub(super) const AGE: &str = "extract(epoch FROM clock_timestamp() - created_at)::float8";

/// The live submissions of a tenant in one state.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveCount {
    pub tenant: String,
    pub state: String,
    pub count: i64,
    /// How many seconds the oldest has waited for its pod, if they wait for one, and not for their queue.
    pub oldest: Option<f64>,
}

/// A row of the statement that counts live submissions.
#[derive(sqlx::FromRow)]
struct Counted {
    tenant: String,
    state: String,
    /// The queue that they wait in.
    queue: Option<String>,
    is_held: bool,
    count: i64,
    waited: Option<f64>,
    queued_for: Option<f64>,
}

/// Returns the larger of two numbers of seconds.
fn later(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.into_iter().chain(other).reduce(f64::max)
}

/// How far a pool is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolUse {
    pub name: &'static str,
    pub busy: usize,
    pub idle: usize,
    pub most: usize,
}

impl Store {
    /// Counts the submissions that haven't ended, by tenant and state. It reads an index of them, whatever the number of the
    /// others is.
    pub async fn live_counts(&self) -> Result<Vec<LiveCount>, Error> {
        Ok(self.figures().await?.0)
    }

    /// Returns the same, and the backlogs of queues.
    pub async fn figures(&self) -> Result<(Vec<LiveCount>, Vec<Backlog>), Error> {
        let action = "counting the live submissions";
        let mut connection = self.for_long_read(action).await?;
        // Each part has an index of its own, which has no other rows.
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT tenant, state, queue, is_held, count(*) AS count, max(waited) AS waited, max(queued_for) AS queued_for FROM (
                 SELECT tenant, state, CASE WHEN {WAITS} THEN queue END AS queue, held_at IS NOT NULL AS is_held,
                     CASE WHEN state <> 'KILLING' AND claimed_by IS DISTINCT FROM {UNADMITTED} THEN {WAITED} END AS waited,
                     CASE WHEN {WAITS} AND held_at IS NULL THEN {QUEUED_FOR} END AS queued_for
                 FROM submissions WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING')
                 UNION ALL SELECT tenant, state, NULL, false, NULL, NULL FROM submissions WHERE state IN ('PENDING', 'RUNNING')
             ) AS live GROUP BY tenant, state, queue, is_held",
        )))
        .fetch_all(&mut *connection);
        let rows: Vec<Counted> = within(action, statement).await?;
        let mut live = BTreeMap::<(String, String), (i64, Option<f64>)>::new();
        let mut backlogs = BTreeMap::<(String, String), Backlog>::new();
        for row in rows {
            let Counted { tenant, state, queue, is_held, count, waited, queued_for } = row;
            if let Some(queue) = queue {
                let new = Backlog { queue: queue.clone(), tenant: tenant.clone(), ..Backlog::default() };
                let backlog = backlogs.entry((queue, tenant.clone())).or_insert(new);
                *(if is_held { &mut backlog.held } else { &mut backlog.waiting }) += count;
                backlog.oldest = later(backlog.oldest, queued_for);
            }
            let of_state = live.entry((tenant, state)).or_default();
            *of_state = (of_state.0 + count, later(of_state.1, waited));
        }
        let count = |((tenant, state), (count, oldest))| LiveCount { tenant, state, count, oldest };
        Ok((live.into_iter().map(count).collect(), backlogs.into_values().collect()))
    }

    /// Returns the time of the database's clock, for a request.
    pub async fn clock(&self) -> Result<DateTime<Utc>, Error> {
        let action = "reading the clock of the database";
        let mut connection = self.connection(action).await?;
        within(action, sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(&mut *connection)).await
    }

    /// Returns how far each pool is used.
    pub fn pools(&self) -> [PoolUse; 4] {
        let shared = |pool: &sqlx::PgPool| Connections::shared(pool.clone()).usage();
        [
            ("requests", shared(&self.pool)),
            ("accepting", self.accepting.usage()),
            ("workers", self.patient.usage()),
            ("leases", shared(&self.leases)),
        ]
        .map(|(name, (busy, idle, most))| PoolUse { name, busy, idle, most })
    }
}
