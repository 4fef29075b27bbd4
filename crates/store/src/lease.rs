//! Leases, by the clock of the database, which is the only one that replicas share.

pub(super) mod groups;

use std::{
    collections::{BTreeMap, HashSet},
    io,
    time::Duration,
};

use chrono::{DateTime, Utc};
use sqlx::{Postgres, pool::PoolConnection};
use uuid::Uuid;

use super::{
    connections::acquire,
    error::{Error, connected, likewise, within},
    group_commit::BatchWriter,
    store::Store,
};
use groups::Wanted;

/// Returns the name of the lease that all claims of a replica's session depend on.
pub fn replica(session: Uuid) -> String {
    format!("replica/{session}")
}

/// The condition that a lease has not expired. A lease that lasts longer than any that is granted was written before the clock
/// of the database went back: its holder may have been gone for long, so it counts as expired.
pub(super) const ALIVE: &str =
    "(expires_at > clock_timestamp() AND expires_at <= clock_timestamp() + interval '30 seconds')";

/// What a renewal found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Renewed {
    /// The leases that were renewed.
    pub names: HashSet<String>,
    /// The leases that other holders have, apart from those of replicas.
    pub elsewhere: HashSet<String>,
}

const ACQUIRING: &str = "acquiring a lease";

impl Store {
    /// Acquires a lease that is free, has expired, or is the holder's own. `false` if another holder has it, or if its row is
    /// locked. Concurrent calls share a statement. A call that is dropped is carried out anyway: its lease expires.
    ///
    /// `ttl` is at most 30 seconds: a longer lease counts as expired.
    pub async fn acquire_lease(&self, name: &str, holder: Uuid, ttl: Duration) -> Result<bool, Error> {
        let wanted = Wanted { name: name.to_owned(), holder, ttl };
        let acquired = self.groups.leases.0.call(wanted, None, || Acquirer(self.clone())).await;
        acquired
            .unwrap_or_else(|why| Err(Error::Unavailable { action: ACQUIRING, source: io::Error::other(why).into() }))
    }

    /// Renews those of these leases that a holder has and that have not expired, and no other: a lease that its holder no longer
    /// wants, or doesn't know that it has, expires. It waits for no lock: a lease whose row another transaction holds is skipped,
    /// and its loss affects no other lease.
    pub async fn renew_leases(&self, holder: Uuid, names: &[String], ttl: Duration) -> Result<Renewed, Error> {
        let action = "renewing leases";
        let mut connection = self.for_lease(action).await?;
        let statement = sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "WITH renewed AS (
                 UPDATE leases SET expires_at = clock_timestamp() + make_interval(secs => $3)
                 WHERE name IN (SELECT name FROM leases WHERE holder = $1 AND name = ANY($2) AND {ALIVE}
                                FOR UPDATE SKIP LOCKED)
                 RETURNING name
             )
             SELECT name, true FROM renewed
             UNION ALL
             SELECT name, false FROM leases WHERE holder <> $1 AND name NOT LIKE 'replica/%' AND {ALIVE}",
        )))
        .bind(holder)
        .bind(names)
        .bind(ttl.as_secs_f64())
        .fetch_all(&mut *connection);
        let all: Vec<(String, bool)> = within(action, statement).await?;
        let mut found = Renewed::default();
        for (name, is_renewed) in all {
            if is_renewed {
                found.names.insert(name)
            } else {
                found.elsewhere.insert(name)
            };
        }
        Ok(found)
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
    pub(super) async fn for_lease(&self, action: &'static str) -> Result<PoolConnection<Postgres>, Error> {
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
}

/// Acquires groups of leases.
struct Acquirer(Store);

impl BatchWriter<Wanted, Result<bool, Error>> for Acquirer {
    async fn write(&self, group: Vec<Wanted>) -> Vec<Result<bool, Error>> {
        // Of several holders that want the same lease, the first in the group may get it.
        let mut first: BTreeMap<&str, &Wanted> = BTreeMap::new();
        for wanted in &group {
            first.entry(&wanted.name).or_insert(wanted);
        }
        match self.acquire(first.values()).await {
            Ok(acquired) => {
                let has = |wanted: &Wanted| {
                    acquired.contains(&wanted.name)
                        && first.get(wanted.name.as_str()).is_some_and(|first| first.holder == wanted.holder)
                };
                group.iter().map(|wanted| Ok(has(wanted))).collect()
            }
            Err(error) => group.iter().map(|_| Err(likewise(&error))).collect(),
        }
    }
}

impl Acquirer {
    /// Returns the names of the leases that were acquired. Nothing is written for the others, and their rows aren't locked.
    async fn acquire<'a>(&self, all: impl Iterator<Item = &'a &'a Wanted> + Clone) -> Result<HashSet<String>, Error> {
        let mut connection = self.0.for_lease(ACQUIRING).await?;
        let names: Vec<&str> = all.clone().map(|wanted| wanted.name.as_str()).collect();
        let holders: Vec<Uuid> = all.clone().map(|wanted| wanted.holder).collect();
        let seconds: Vec<f64> = all.map(|wanted| wanted.ttl.as_secs_f64()).collect();
        let statement = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
            "WITH wanted AS MATERIALIZED (
                 SELECT * FROM unnest($1::text[], $2::uuid[], $3::float8[]) AS wanted (name, new_holder, seconds)
             ), free AS MATERIALIZED (
                 SELECT name FROM leases JOIN wanted USING (name) WHERE holder = new_holder OR NOT {ALIVE}
                 ORDER BY name FOR UPDATE OF leases SKIP LOCKED
             ), taken AS (
                 UPDATE leases l SET holder = new_holder, expires_at = clock_timestamp() + make_interval(secs => seconds),
                     epoch = epoch + CASE WHEN holder = new_holder THEN 0 ELSE 1 END
                 FROM free JOIN wanted USING (name) WHERE l.name = free.name
                 RETURNING l.name
             ), made AS (
                 INSERT INTO leases (name, holder, expires_at)
                 SELECT name, new_holder, clock_timestamp() + make_interval(secs => seconds) FROM wanted
                 WHERE NOT EXISTS (SELECT FROM leases l WHERE l.name = wanted.name)
                 ORDER BY name ON CONFLICT DO NOTHING
                 RETURNING name
             )
             SELECT name FROM taken UNION ALL SELECT name FROM made",
        )))
        .bind(names)
        .bind(holders)
        .bind(seconds)
        .fetch_all(&mut *connection);
        Ok(within(ACQUIRING, statement).await?.into_iter().collect())
    }
}
