//! What metrics say of the rows and of the connections.

use chrono::{DateTime, Utc};

use super::{
    connections::Connections,
    error::{Error, within},
    store::Store,
    unadmitted::UNADMITTED,
};

/// How many seconds an attempt has waited: since its submission was accepted, since the end of the attempt before, or since its queue
/// admitted it.
pub(super) const WAITED: &str =
    "extract(epoch FROM clock_timestamp() - greatest(admitted_at, coalesce(queued_at, created_at)))::float8";
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
        let action = "counting the live submissions";
        let mut connection = self.for_long_read(action).await?;
        // Each part has an index of its own, which has no other rows.
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT tenant, state, count(*), max(waited) FROM (
                 SELECT tenant, state,
                     CASE WHEN state <> 'KILLING' AND claimed_by IS DISTINCT FROM {UNADMITTED} THEN {WAITED} END AS waited
                 FROM submissions WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING')
                 UNION ALL SELECT tenant, state, NULL FROM submissions WHERE state IN ('PENDING', 'RUNNING')
             ) AS live GROUP BY tenant, state",
        )))
        .fetch_all(&mut *connection);
        let rows: Vec<(String, String, i64, Option<f64>)> = within(action, statement).await?;
        let count = |(tenant, state, count, oldest)| LiveCount { tenant, state, count, oldest };
        Ok(rows.into_iter().map(count).collect())
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
