//! Leases: who holds something, by the clock of the database, which is the only one that replicas share.

use std::time::Duration;

use uuid::Uuid;

use super::{Error, Store, error::within};
use crate::submission::Installation;

/// The lease that stands behind all claims of a replica's session.
pub fn replica(session: Uuid) -> String {
    format!("replica/{session}")
}

/// Deletes the leases of sessions that ended a day ago, and on which no row still waits. It waits for nobody.
const FORGET: &str = "
    DELETE FROM leases WHERE name IN (
        SELECT name FROM leases WHERE name LIKE 'replica/%' AND expires_at < statement_timestamp() - interval '1 day'
        FOR UPDATE SKIP LOCKED)
    AND holder NOT IN (
        SELECT claimed_by FROM submissions
        WHERE state IN ('QUEUED', 'LAUNCHING', 'KILLING') AND claimed_by IS NOT NULL)";

impl Store {
    /// Takes a lease that is free, has run out, or is the holder's own. `false` if somebody else has it: this is seen
    /// before anything is written, for an upsert that changes nothing locks the row all the same. A replica that begins a
    /// session with it also forgets the sessions of replicas that ended long ago.
    pub async fn acquire_lease(&self, name: &str, holder: Uuid, ttl: Duration) -> Result<bool, Error> {
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "WITH forgotten AS ({FORGET} AND $1 LIKE 'replica/%')
             INSERT INTO leases AS l (name, holder, expires_at)
             SELECT $1, $2, clock_timestamp() + make_interval(secs => $3)
             WHERE NOT EXISTS (SELECT FROM leases AS live
                 WHERE live.name = $1 AND live.holder <> $2 AND live.expires_at > clock_timestamp())
             ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
                 epoch = l.epoch + CASE WHEN l.holder = excluded.holder THEN 0 ELSE 1 END
             WHERE l.holder = excluded.holder OR l.expires_at <= clock_timestamp()",
        )))
        .bind(name)
        .bind(holder)
        .bind(ttl.as_secs_f64())
        .execute(&self.leases);
        Ok(within("taking a lease", statement).await?.rows_affected() == 1)
    }

    /// Extends all leases of a holder that have not run out; answers their names.
    pub async fn renew_leases(&self, holder: Uuid, ttl: Duration) -> Result<Vec<String>, Error> {
        let statement = sqlx::query_scalar(
            "UPDATE leases SET expires_at = clock_timestamp() + make_interval(secs => $2)
             WHERE holder = $1 AND expires_at > clock_timestamp() RETURNING name",
        )
        .bind(holder)
        .bind(ttl.as_secs_f64())
        .fetch_all(&self.leases);
        within("renewing leases", statement).await
    }

    /// Ends one lease of a holder.
    pub async fn end_lease(&self, name: &str, holder: Uuid) -> Result<(), Error> {
        let statement = sqlx::query("UPDATE leases SET expires_at = clock_timestamp() WHERE name = $1 AND holder = $2")
            .bind(name)
            .bind(holder)
            .execute(&self.leases);
        within("giving a lease back", statement).await?;
        Ok(())
    }

    /// Ends all leases of a holder, and forgets the sessions of replicas that ended long ago.
    pub async fn end_leases(&self, holder: Uuid) -> Result<(), Error> {
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "WITH forgotten AS ({FORGET}) UPDATE leases SET expires_at = clock_timestamp() WHERE holder = $1",
        )))
        .bind(holder)
        .execute(&self.leases);
        within("giving leases back", statement).await?;
        Ok(())
    }

    /// Up to where the watch of a namespace was taken in.
    pub async fn watch_position(&self, scope: &str) -> Result<Option<String>, Error> {
        let statement = sqlx::query_scalar("SELECT resource_version FROM watch_positions WHERE scope = $1")
            .bind(scope)
            .fetch_optional(&self.patient);
        within("reading where the watch was", statement).await
    }

    /// Keeps up to where the watch of a namespace was taken in.
    pub async fn keep_watch_position(&self, scope: &str, resource_version: &str) -> Result<(), Error> {
        let statement = sqlx::query(
            "INSERT INTO watch_positions (scope, resource_version, at) VALUES ($1, $2, clock_timestamp())
             ON CONFLICT (scope) DO UPDATE SET resource_version = excluded.resource_version, at = excluded.at",
        )
        .bind(scope)
        .bind(resource_version)
        .execute(&self.patient);
        within("keeping where the watch is", statement).await?;
        Ok(())
    }

    /// The installation, the same for all replicas on one database.
    pub async fn installation(&self) -> Result<Installation, Error> {
        let statement = sqlx::query_as("SELECT id, key FROM installation").fetch_one(&self.patient);
        let (id, key): (Uuid, Vec<u8>) = within("reading the installation's id", statement).await?;
        Ok(Installation::new(id, key))
    }
}
