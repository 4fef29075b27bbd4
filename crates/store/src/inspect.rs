//! Reads what `sparkgate doctor` compares with the needs of a gateway. Nothing is written, nor migrated.

use std::{str::FromStr, time::Duration};

use chrono::{DateTime, Utc};
use sqlx::{
    Connection, PgConnection,
    migrate::{Migrate, MigrateError, Migrator},
    postgres::{PgConnectOptions, PgPoolOptions},
};

use super::{
    connect::{ConnectError, DatabaseSettings, first_connection},
    error::{Error, within},
    migrate::has_table,
    store::Store,
};

/// A store that reads, and what is known of its server.
#[derive(Debug)]
pub struct Inspection {
    pub store: Store,
    pub server: Server,
    pub migrations: Migrations,
    /// What the role may not do, in the words of `GRANT`: `INSERT ON leases`.
    pub missing_grants: Vec<String>,
}

/// Settings and state of a server.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Server {
    /// As `SHOW server_version` has it.
    pub version: String,
    /// As `SHOW server_version_num` has it: 170002.
    pub version_number: i32,
    pub fsync: bool,
    pub full_page_writes: bool,
    /// `on`, `off`, `local`, `remote_write` or `remote_apply`, for this role and database.
    pub synchronous_commit: String,
    pub synchronous_standby_names: String,
    /// Connections that roles like this one may use at most.
    pub max_connections: i32,
    /// Connections of clients that are open now.
    pub open_connections: i64,
    /// Timeouts for this role and database, in milliseconds; 0 for none.
    pub idle_session_timeout: i64,
    pub idle_in_transaction_session_timeout: i64,
    pub transaction_timeout: i64,
    pub statement_timeout: i64,
    /// Whether this connection is encrypted.
    pub ssl: bool,
    pub user: String,
    /// Whether this role may change entries of the audit, as their owner.
    pub owns_audit: bool,
    /// The clock of the server, and this machine's at that moment.
    pub now: DateTime<Utc>,
    #[sqlx(skip)]
    pub here: DateTime<Utc>,
    /// Whether the role sees the transactions of other roles.
    pub sees_all: bool,
    /// What keeps old versions of rows from being removed, the oldest first, as far as the role sees it.
    #[sqlx(skip)]
    pub snapshots: Vec<OldSnapshot>,
}

/// A transaction that may still read old versions of rows, which a vacuum can't remove then.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct OldSnapshot {
    /// Whose it is, in words.
    pub holder: String,
    /// How many transactions have begun since.
    pub age: i64,
    /// How long ago it began, if that is known.
    pub seconds: Option<i64>,
}

/// The migrations of the database, compared with those of this release.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Migrations {
    pub newest: Option<i64>,
    /// Those that the database doesn't have yet.
    pub missing: Vec<i64>,
    /// Those that this release doesn't have.
    pub newer: Vec<i64>,
    /// Those that were changed after they had been applied.
    pub changed: Vec<i64>,
    /// The one that was interrupted.
    pub interrupted: Option<i64>,
}

const SERVER: &str = "
WITH reserved AS (
    SELECT coalesce(sum(setting::int), 0) AS count FROM pg_settings
    WHERE name IN ('superuser_reserved_connections', 'reserved_connections')
), timeouts AS (
    SELECT name, setting::bigint AS ms FROM pg_settings
    WHERE name IN ('idle_session_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout', 'statement_timeout')
)
SELECT current_setting('server_version') AS version,
       current_setting('server_version_num')::int AS version_number,
       current_setting('fsync')::bool AS fsync,
       current_setting('full_page_writes')::bool AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('synchronous_standby_names') AS synchronous_standby_names,
       (SELECT least(current_setting('max_connections')::int - reserved.count, nullif(rolconnlimit, -1), nullif(datconnlimit, -1))::int
        FROM reserved, pg_roles, pg_database WHERE rolname = current_user AND datname = current_database()) AS max_connections,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS open_connections,
       coalesce((SELECT ms FROM timeouts WHERE name = 'idle_session_timeout'), 0) AS idle_session_timeout,
       coalesce((SELECT ms FROM timeouts WHERE name = 'idle_in_transaction_session_timeout'), 0)
           AS idle_in_transaction_session_timeout,
       coalesce((SELECT ms FROM timeouts WHERE name = 'transaction_timeout'), 0) AS transaction_timeout,
       coalesce((SELECT ms FROM timeouts WHERE name = 'statement_timeout'), 0) AS statement_timeout,
       coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false) AS ssl,
       current_user::text AS \"user\",
       pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all,
       coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('audit')), false) AS owns_audit,
       clock_timestamp() AS now";

/// Transactions, also prepared ones; and standbys with `hot_standby_feedback`, with and without a slot.
const SNAPSHOTS: &str = "
SELECT holder, age, seconds FROM (
    SELECT coalesce(nullif(application_name, ''), backend_type) || ' (pid ' || pid || ', role ' || coalesce(usename, '-') || ')' AS holder,
           age(backend_xmin)::bigint AS age, extract(epoch FROM clock_timestamp() - xact_start)::bigint AS seconds
    FROM pg_stat_activity
    WHERE backend_xmin IS NOT NULL AND datname = current_database() AND pid <> pg_backend_pid()
    UNION ALL
    SELECT 'the prepared transaction ' || gid, age(transaction)::bigint, extract(epoch FROM clock_timestamp() - prepared)::bigint
    FROM pg_prepared_xacts WHERE database = current_database()
    UNION ALL
    SELECT 'the replication slot ' || slot_name, age(xmin)::bigint, NULL FROM pg_replication_slots WHERE xmin IS NOT NULL
    UNION ALL
    SELECT 'the standby ' || coalesce(nullif(application_name, ''), client_addr::text, '-'), age(backend_xmin)::bigint, NULL
    FROM pg_stat_replication WHERE backend_xmin IS NOT NULL
) AS all_of_them ORDER BY age DESC LIMIT 10";

/// The rights of the documented grants (docs/operate/reliability.md). Entries of the audit are only added and removed by age.
const GRANTS: &str = "
SELECT needed.verb || ' ON ' || needed.name
FROM unnest($1::text[]) AS t (name), LATERAL unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS v (verb),
     LATERAL (SELECT t.name, v.verb) AS needed
WHERE to_regclass(needed.name) IS NOT NULL
  AND NOT (needed.name = 'audit' AND needed.verb IN ('UPDATE', 'DELETE'))
  AND NOT has_table_privilege(to_regclass(needed.name), needed.verb)
ORDER BY 1";

impl Store {
    /// Connects as at a start, but applies no migration. The store's connections are read-only.
    ///
    /// # Errors
    /// [`ConnectError`]; the server can't be used as the gateway's database.
    pub async fn inspect(settings: &DatabaseSettings) -> Result<Inspection, ConnectError> {
        let options = PgConnectOptions::from_str(&settings.url).map_err(ConnectError::Url)?;
        let options = options.application_name("sparkgate doctor");
        let (address, mut connection) = first_connection(&options).await?;
        let inspected = async {
            let read_only =
                "SET default_transaction_read_only = on; SET statement_timeout = '9s'; SET lock_timeout = '2s'";
            let server = server(&mut connection).await?;
            sqlx::raw_sql(read_only).execute(&mut connection).await?;
            let migrator = sqlx::migrate!("../../migrations");
            let migrations = migrations(&migrator, &mut connection).await?;
            let tables = tables(&migrator);
            let grants = sqlx::query_scalar(GRANTS).bind(tables).fetch_all(&mut connection).await?;
            Ok::<_, MigrateError>((server, migrations, grants))
        };
        let late = || MigrateError::from(sqlx::Error::PoolTimedOut);
        let inspected = tokio::time::timeout(LIMIT, inspected).await.unwrap_or_else(|_| Err(late()));
        let inspected = inspected.map_err(|source| ConnectError::Inspect { address, source });
        let (server, migrations, missing_grants) = inspected?;
        let _ = tokio::time::timeout(LIMIT, connection.close()).await;
        let pool = PgPoolOptions::new().max_connections(1).acquire_timeout(LIMIT).after_connect(|connection, _| {
            Box::pin(async move {
                let read_only = "SET default_transaction_read_only = on; SET statement_timeout = '9s'";
                sqlx::raw_sql(read_only).execute(connection).await.map(drop)
            })
        });
        let store = Store::new(pool.connect_lazy_with(options));
        Ok(Inspection { store, server, migrations, missing_grants })
    }

    /// Returns the ids of the keys with which objects are encrypted that launches still need.
    pub async fn encryption_keys_in_use(&self) -> Result<Vec<String>, Error> {
        let statement =
            sqlx::query_scalar("SELECT DISTINCT sealed_key FROM manifests WHERE sealed_key IS NOT NULL ORDER BY 1");
        within("reading the ids of encryption keys", statement.fetch_all(&self.patient)).await
    }

    /// Returns which of these submissions have ended more than this time ago, or have no record.
    pub async fn ended_or_unknown(&self, ids: &[&str], ago: Duration) -> Result<Vec<String>, Error> {
        let statement = sqlx::query_scalar(
            "SELECT named.id FROM unnest($1::text[]) AS named (id) LEFT JOIN submissions USING (id)
             WHERE submissions.id IS NULL
                OR state = ANY($2) AND finished_at < clock_timestamp() - make_interval(secs => $3)",
        )
        .bind(ids)
        .bind(super::row::ends())
        .bind(ago.as_secs_f64());
        within("reading which submissions have ended", statement.fetch_all(&self.patient)).await
    }
}

const LIMIT: Duration = Duration::from_secs(15);

async fn server(connection: &mut PgConnection) -> Result<Server, sqlx::Error> {
    let before = Utc::now();
    let server: Server = sqlx::query_as(SERVER).fetch_one(&mut *connection).await?;
    // The answer was written between the two.
    let here = before + (Utc::now() - before) / 2;
    let snapshots = sqlx::query_as(SNAPSHOTS).fetch_all(connection).await?;
    Ok(Server { here, snapshots, ..server })
}

async fn migrations(migrator: &Migrator, connection: &mut PgConnection) -> Result<Migrations, MigrateError> {
    let table = &migrator.table_name;
    let mut found = Migrations::default();
    if !has_table(table, connection).await? {
        found.missing = migrator.iter().map(|migration| migration.version).collect();
        return Ok(found);
    }
    found.interrupted = connection.dirty_version(table).await?;
    let applied = connection.list_applied_migrations(table).await?;
    found.newest = applied.iter().map(|applied| applied.version).max();
    for migration in migrator.iter() {
        match applied.iter().find(|applied| applied.version == migration.version) {
            None => found.missing.push(migration.version),
            Some(applied) if applied.checksum == migration.checksum => {}
            Some(_) => found.changed.push(migration.version),
        }
    }
    let is_ours = |version: i64| migrator.iter().any(|migration| migration.version == version);
    found.newer = applied.iter().map(|applied| applied.version).filter(|version| !is_ours(*version)).collect();
    Ok(found)
}

/// Returns the names of the tables that the migrations create.
fn tables(migrator: &Migrator) -> Vec<String> {
    let of_one = |sql: &str| {
        let parts = sql.split("CREATE TABLE ").skip(1);
        parts.filter_map(|part| part.split_whitespace().next().map(str::to_owned)).collect::<Vec<_>>()
    };
    migrator.iter().flat_map(|migration| of_one(migration.sql.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_those_of_the_migrations() {
        let tables = tables(&sqlx::migrate!("../../migrations"));
        for table in ["submissions", "leases", "audit", "manifests"] {
            assert!(tables.iter().any(|name| name == table), "{tables:?}");
        }
    }
}
