//! Leases, by the clock of the database, which is the only one that replicas share.

use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::{Postgres, pool::PoolConnection};
use uuid::Uuid;

use super::{
    Error, Store,
    connections::acquire,
    error::{connected, within},
};
use sparkgate_submission::Installation;

/// Returns the name of the lease that all claims of a replica's session depend on.
pub fn replica(session: Uuid) -> String {
    format!("replica/{session}")
}

/// The condition that a lease has not expired. A lease that lasts longer than any that is granted was written before the clock
/// of the database went back: its holder may have been gone for long, so it counts as expired.
pub(super) const ALIVE: &str =
    "(expires_at > clock_timestamp() AND expires_at <= clock_timestamp() + interval '30 seconds')";

impl Store {
    /// Acquires a lease that is free, has expired, or is the holder's own. `false` if another holder has it. This is checked
    /// before anything is written, because an upsert that changes nothing still locks the row.
    ///
    /// `ttl` is at most 30 seconds: a longer lease counts as expired.
    pub async fn acquire_lease(&self, name: &str, holder: Uuid, ttl: Duration) -> Result<bool, Error> {
        let action = "acquiring a lease";
        let mut connection = self.for_lease(action).await?;
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "INSERT INTO leases (name, holder, expires_at)
             SELECT $1, $2, clock_timestamp() + make_interval(secs => $3)
             WHERE NOT EXISTS (SELECT FROM leases WHERE name = $1 AND holder <> $2 AND {ALIVE})
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
                 epoch = leases.epoch + CASE WHEN leases.holder = excluded.holder THEN 0 ELSE 1 END
             WHERE leases.holder = excluded.holder OR NOT {OLD_ALIVE}",
            OLD_ALIVE = ALIVE.replace("expires_at", "leases.expires_at"),
        )))
        .bind(name)
        .bind(holder)
        .bind(ttl.as_secs_f64())
        .execute(&mut *connection);
        Ok(within(action, statement).await?.rows_affected() == 1)
    }

    /// Returns whether another holder has a lease that has not expired.
    pub async fn lease_is_held_by_another(&self, name: &str, holder: Uuid) -> Result<bool, Error> {
        let statement = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
            "SELECT EXISTS (SELECT FROM leases WHERE name = $1 AND holder <> $2 AND {ALIVE})",
        )))
        .bind(name)
        .bind(holder)
        .fetch_one(&self.leases);
        within("reading the holder of a lease", statement).await
    }

    /// Renews all leases of a holder that have not expired, and returns their names. It waits for no lock: a lease whose row
    /// another transaction holds is skipped, and its loss affects no other lease.
    pub async fn renew_leases(&self, holder: Uuid, ttl: Duration) -> Result<Vec<String>, Error> {
        let action = "renewing leases";
        let mut connection = self.for_lease(action).await?;
        let statement = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
            "UPDATE leases SET expires_at = clock_timestamp() + make_interval(secs => $2)
             WHERE name IN (SELECT name FROM leases WHERE holder = $1 AND {ALIVE} FOR UPDATE SKIP LOCKED) RETURNING name",
        )))
        .bind(holder)
        .bind(ttl.as_secs_f64())
        .fetch_all(&mut *connection);
        within(action, statement).await
    }

    /// Ends one lease of a holder.
    pub async fn end_lease(&self, name: &str, holder: Uuid) -> Result<(), Error> {
        let action = "releasing a lease";
        let mut connection = self.for_lease(action).await?;
        let statement = sqlx::query("UPDATE leases SET expires_at = clock_timestamp() WHERE name = $1 AND holder = $2")
            .bind(name)
            .bind(holder)
            .execute(&mut *connection);
        within(action, statement).await?;
        Ok(())
    }

    /// Ends all leases of a holder.
    pub async fn end_leases(&self, holder: Uuid) -> Result<(), Error> {
        let action = "releasing leases";
        let mut connection = self.for_lease(action).await?;
        let statement = sqlx::query("UPDATE leases SET expires_at = clock_timestamp() WHERE holder = $1")
            .bind(holder)
            .execute(&mut *connection);
        within(action, statement).await?;
        Ok(())
    }

    /// Returns a connection for a lease. If the caller gives up while it is being opened, it serves the next caller.
    async fn for_lease(&self, action: &'static str) -> Result<PoolConnection<Postgres>, Error> {
        connected(action, acquire(&self.leases)).await
    }

    /// Deletes the leases of sessions that ended a day ago, unless a waiting row still refers to them. It waits for no lock,
    /// and runs on the workers' connections, because with a long queue it takes longer than a lease can wait.
    pub async fn forget_sessions(&self) -> Result<(), Error> {
        let statement = sqlx::query(
            "DELETE FROM leases WHERE name IN (
                 SELECT name FROM leases WHERE name LIKE 'replica/%' AND expires_at < statement_timestamp() - interval '1 day'
                 FOR UPDATE SKIP LOCKED)
             AND holder NOT IN (
                 SELECT claimed_by FROM submissions
                 WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING') AND claimed_by IS NOT NULL)",
        )
        .execute(&self.patient);
        within("deleting old sessions", statement).await?;
        Ok(())
    }

    /// Returns the time of the database's clock, for workers.
    pub async fn now(&self) -> Result<DateTime<Utc>, Error> {
        let statement = sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(&self.patient);
        within("reading the time of the database", statement).await
    }

    /// Returns the position up to which the watch of a namespace was processed.
    pub async fn watch_position(&self, scope: &str) -> Result<Option<String>, Error> {
        let statement = sqlx::query_scalar("SELECT resource_version FROM watch_positions WHERE scope = $1")
            .bind(scope)
            .fetch_optional(&self.patient);
        within("reading the position of the watch", statement).await
    }

    /// Stores the position up to which the watch of a namespace was processed, if the holder has the lease of the watch, and no later
    /// holder has stored one: a process that was stopped for a while must not set it back. Returns whether it was stored.
    ///
    /// The lease isn't locked, because a renewal skips locked leases. If it passes to another holder during this statement, the
    /// epoch tells.
    pub async fn keep_watch_position(
        &self,
        scope: &str,
        resource_version: &str,
        (lease, holder): (&str, Uuid),
    ) -> Result<bool, Error> {
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "INSERT INTO watch_positions AS old (scope, resource_version, at, epoch)
             SELECT $1, $2, clock_timestamp(), epoch FROM leases WHERE name = $3 AND holder = $4 AND {ALIVE}
             ON CONFLICT (scope) DO UPDATE SET resource_version = excluded.resource_version, at = excluded.at,
                 epoch = excluded.epoch
             WHERE old.epoch <= excluded.epoch",
        )))
        .bind(scope)
        .bind(resource_version)
        .bind(lease)
        .bind(holder)
        .execute(&self.patient);
        Ok(within("storing the position of the watch", statement).await?.rows_affected() == 1)
    }

    /// Returns the installation, which is the same for all replicas of one database.
    pub async fn installation(&self) -> Result<Installation, Error> {
        let statement = sqlx::query_as("SELECT id, key FROM installation").fetch_one(&self.patient);
        let (id, key): (Uuid, Vec<u8>) = within("reading the installation's id", statement).await?;
        Ok(Installation::new(id, key))
    }
}
