//! What Postgres reports about the tables.

use sqlx::PgConnection;

/// A reading of Postgres' counters.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Tables {
    /// Updates of `submissions`, and those of them that wrote no index.
    updates: i64,
    hot_updates: i64,
    /// Bytes of WAL that were ever written.
    pub(super) wal: f64,
    pub(super) bytes: f64,
}

/// The tables and indexes with a row for each submission.
const BYTES: &str = "SELECT sum(pg_total_relation_size(name::regclass))::float8
    FROM unnest(ARRAY['submissions', 'submission_events', 'manifests']) AS of (name)";

impl Tables {
    pub(super) async fn read(connection: &mut PgConnection) -> anyhow::Result<Self> {
        let statement = format!(
            "SELECT n_tup_upd AS updates, n_tup_hot_upd AS hot_updates,
                 pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS wal, ({BYTES}) AS bytes
             FROM pg_stat_user_tables WHERE relname = 'submissions'"
        );
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(statement)).fetch_one(connection).await?)
    }

    /// Returns percent.
    pub(super) fn share_of_hot_updates_since(&self, before: &Self) -> f64 {
        100.0 * (self.hot_updates - before.hot_updates) as f64 / (self.updates - before.updates).max(1) as f64
    }
}

pub(super) async fn bytes(connection: &mut PgConnection) -> anyhow::Result<f64> {
    Ok(sqlx::query_scalar(BYTES).fetch_one(connection).await?)
}
