//! The installation: its id, its keys, and which keys the replicas of this database can verify.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    error::{Error, within},
    lease::ALIVE,
    store::Store,
};
use sparkgate_submission::Installation;

/// What the database knows of keys that sign.
#[derive(Debug, Clone)]
pub struct InstallationKeys {
    /// The installation's own key.
    pub own: Vec<u8>,
    /// The keys before it, each with the time of its replacement, the newest first.
    pub former: Vec<(Vec<u8>, DateTime<Utc>)>,
    /// Since when every replica signs with keys of the encryption key file.
    pub guarded_since: Option<DateTime<Utc>>,
    /// What other live replicas can verify; `None` for a replica of an older release.
    pub others: Vec<Option<Vec<String>>>,
}

/// A database among those that are copies of one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct Generation {
    pub id: Uuid,
    /// Whether it is a copy of another one.
    pub is_copy: bool,
}

impl Store {
    /// Returns which of the databases with this installation this one is.
    pub async fn generation(&self) -> Result<Generation, Error> {
        let generation = "SELECT coalesce(generation, id) AS id, copy_of IS NOT NULL AS is_copy FROM installation";
        within("reading the generation of the database", sqlx::query_as(generation).fetch_one(&self.patient)).await
    }

    /// Notes that the database is a copy of one that is still used. What is to be sent to webhooks is the original's to send.
    pub async fn become_copy(&self) -> Result<(), Error> {
        let statement = sqlx::query(
            "WITH dead AS (
                 UPDATE webhook_deliveries SET status = 'dead', ended_at = clock_timestamp(),
                     error = 'the database is a copy: its original sends this'
                 WHERE status = 'pending'
             )
             UPDATE installation SET copy_of = coalesce(copy_of, generation, id), generation = gen_random_uuid(),
                 copied_until = (SELECT coalesce(max(number), -1) FROM submissions)",
        )
        .execute(&self.patient);
        within("noting that the database is a copy", statement).await?;
        Ok(())
    }

    /// Notes that the database takes the place of the one that it is a copy of, if it is one.
    pub async fn become_original(&self) -> Result<(), Error> {
        let statement = sqlx::query(
            "UPDATE installation SET generation = copy_of, copy_of = NULL, copied_until = -1 WHERE copy_of IS NOT NULL",
        )
        .execute(&self.patient);
        within("noting that the database is no copy", statement).await?;
        Ok(())
    }

    /// Returns the installation, which is the same for all replicas of one database.
    pub async fn installation(&self) -> Result<Installation, Error> {
        let statement = sqlx::query_as("SELECT id, key FROM installation").fetch_one(&self.patient);
        let (id, key): (Uuid, Vec<u8>) = within("reading the installation's id", statement).await?;
        Ok(Installation::new(id, key))
    }

    /// Returns the keys that sign, for the replica with this session.
    pub async fn installation_keys(&self, session: Uuid) -> Result<InstallationKeys, Error> {
        let action = "reading the installation's keys";
        let own = sqlx::query_as("SELECT key, guarded_since FROM installation").fetch_one(&self.patient);
        let (own, guarded_since) = within(action, own).await?;
        let former = "SELECT key, replaced_at FROM former_installation_keys ORDER BY replaced_at DESC";
        let former = within(action, sqlx::query_as(former).fetch_all(&self.patient)).await?;
        let others = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
            "SELECT known FROM leases LEFT JOIN replica_keys ON session = holder
             WHERE name = 'replica/' || holder AND holder <> $1 AND {ALIVE}"
        )))
        .bind(session)
        .fetch_all(&self.patient);
        Ok(InstallationKeys { own, former, guarded_since, others: within(action, others).await? })
    }

    /// Publishes which keys the replica with this session can verify, and its host, and forgets replicas that are gone.
    pub async fn publish_keys(&self, session: Uuid, host: &str, known: &[String]) -> Result<(), Error> {
        let action = "publishing the keys of this replica";
        let mut connection = self.for_lease(action).await?;
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "WITH gone AS (
                 DELETE FROM replica_keys WHERE session <> $1 AND written_at < clock_timestamp() - interval '1 day'
                     AND session NOT IN (SELECT holder FROM leases WHERE {ALIVE})
             )
             INSERT INTO replica_keys AS r (session, known, host) VALUES ($1, $2, $3)
             ON CONFLICT (session) DO UPDATE SET known = excluded.known WHERE r.known <> excluded.known"
        )))
        .bind(session)
        .bind(known)
        .bind(host)
        .execute(&mut *connection);
        within(action, statement).await?;
        Ok(())
    }

    /// Notes whether replicas sign with keys of the encryption key file. The time remains that of the first note.
    pub async fn note_guarded(&self, is_guarded: bool) -> Result<Option<DateTime<Utc>>, Error> {
        let statement = sqlx::query_scalar(
            "UPDATE installation SET guarded_since = CASE WHEN $1 THEN coalesce(guarded_since, clock_timestamp()) END
             RETURNING guarded_since",
        )
        .bind(is_guarded)
        .fetch_one(&self.patient);
        within("noting with which keys replicas sign", statement).await
    }

    /// Replaces the installation's own key by this one. Returns `false`, and changes nothing, if a replica of an older release
    /// is alive: it would not notice.
    pub async fn rotate_installation_key(&self, key: &[u8]) -> Result<bool, Error> {
        let statement = sqlx::query(sqlx::AssertSqlSafe(format!(
            "WITH replaced AS (
                 UPDATE installation i SET key = $1 FROM (SELECT key FROM installation FOR UPDATE) old
                 WHERE NOT EXISTS (
                     SELECT FROM leases LEFT JOIN replica_keys ON session = holder
                     WHERE name = 'replica/' || holder AND {ALIVE} AND session IS NULL)
                 RETURNING old.key
             )
             INSERT INTO former_installation_keys (key) SELECT key FROM replaced"
        )))
        .bind(key)
        .execute(&self.patient);
        Ok(within("replacing the installation's key", statement).await?.rows_affected() == 1)
    }
}
