//! Applies pending migrations.

use std::{
    io::{self, ErrorKind},
    time::{Duration, Instant},
};

use backon::{BackoffBuilder, ExponentialBuilder};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, PgConnection,
    migrate::{Migrate, MigrateError, Migration, Migrator},
    postgres::PgConnectOptions,
};
use tokio::time::{sleep, timeout};

/// Key of the advisory lock under which one replica migrates: "sparkgate" as a number, nothing more.
const LOCK: i64 = 0x7370_6172_6b67_7465;
const TRY: Duration = Duration::from_millis(200);
/// After this time, waiting for the lock is logged, once.
const SILENT: Duration = Duration::from_secs(5);

/// Timeout of a small statement. A statement that takes longer has lost its server: sqlx itself would wait forever.
const LIMIT: Duration = Duration::from_secs(10);
/// How long files in transactions are tried, and how long one may take. Building an index has no limit.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// How long a statement waits for the lock of a table: every later statement on the table waits behind it, and requests give up after
/// two seconds.
const WAIT: &str = "400ms";
/// The pauses between the tries, in which other statements go on.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// Interval of looks at a backend that builds an index.
const WATCH: Duration = Duration::from_secs(30);

/// Applies pending migrations while other replicas wait. Those poll for the lock instead of waiting in a statement: a waiting
/// statement keeps `CREATE INDEX CONCURRENTLY`, which waits for all others, from ever finishing.
///
/// If none is pending, this only reads, so that a role without the right to define or lock objects is sufficient.
///
/// The connection has to be closed afterwards: its settings are unusual, and after an error it may hold the lock.
///
/// `options` lead to the same server: an index may take hours, in which another connection looks whether its backend is still there.
pub(super) async fn migrate(connection: &mut PgConnection, options: &PgConnectOptions) -> Result<(), MigrateError> {
    // A newer release may have migrated already; its schema works with this one (migrations/README.md).
    let migrator = sqlx::migrate!("../../migrations");
    if within(LIMIT, missing(&migrator, connection)).await?.is_empty() {
        return Ok(());
    }
    lock(connection).await?;
    let missing = within(LIMIT, missing(&migrator, connection)).await?;
    if !missing.is_empty() {
        let versions: Vec<i64> = missing.iter().map(|migration| migration.version).collect();
        tracing::info!(?versions, "migrating the database");
        apply_all(&migrator.table_name, &missing, connection, options).await?;
    }
    let unlock = sqlx::query("SELECT pg_advisory_unlock($1)").bind(LOCK);
    within(LIMIT, async { Ok(unlock.execute(connection).await?) }).await?;
    Ok(())
}

async fn lock(connection: &mut PgConnection) -> Result<(), MigrateError> {
    let begun = Instant::now();
    let mut silent = true;
    loop {
        let ask = sqlx::query_scalar::<_, bool>("SELECT pg_try_advisory_lock($1)").bind(LOCK);
        if within(LIMIT, async { Ok(ask.fetch_one(&mut *connection).await?) }).await? {
            return Ok(());
        }
        if silent && begun.elapsed() >= SILENT {
            silent = false;
            tracing::warn!(
                "waiting for another process that migrates the database: pg_locks says which one has the advisory lock"
            );
        }
        sleep(TRY).await;
    }
}

/// Returns the migrations that the database doesn't have yet, in order.
///
/// # Errors
/// An applied migration has changed since it was applied.
async fn missing<'m>(
    migrator: &'m Migrator,
    connection: &mut PgConnection,
) -> Result<Vec<&'m Migration>, MigrateError> {
    let table = &migrator.table_name;
    // CREATE TABLE IF NOT EXISTS requires the right to create the table even if it exists.
    if !has_table(table, connection).await? {
        return Ok(migrator.iter().collect());
    }
    if let Some(version) = connection.dirty_version(table).await? {
        return Err(MigrateError::Dirty(version));
    }
    let applied = connection.list_applied_migrations(table).await?;
    let mut missing = Vec::new();
    for migration in migrator.iter() {
        match applied.iter().find(|applied| applied.version == migration.version) {
            None => missing.push(migration),
            Some(applied) if applied.checksum == migration.checksum => {}
            Some(_) => return Err(MigrateError::VersionMismatch(migration.version)),
        }
    }
    Ok(missing)
}

pub(super) async fn has_table(table: &str, connection: &mut PgConnection) -> Result<bool, MigrateError> {
    let there = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL").bind(table);
    Ok(there.fetch_one(connection).await?)
}

async fn apply_all(
    table: &str,
    missing: &[&Migration],
    connection: &mut PgConnection,
    options: &PgConnectOptions,
) -> Result<(), MigrateError> {
    if !within(LIMIT, has_table(table, connection)).await? {
        within(LIMIT, connection.ensure_migrations_table(table)).await?;
    }
    let until = Instant::now() + PATIENCE;
    for migration in missing {
        match concurrent_index(migration) {
            Some(index) => build(table, migration, index, connection, options).await?,
            None => apply(table, migration, connection, until).await?,
        }
    }
    Ok(())
}

/// Applies a migration in its transaction. While a statement waits for a table lock, all later statements on the table wait, too: so it
/// waits for a moment only, and is tried again after pauses that grow, for as long as a reader such as `pg_dump` holds the table.
async fn apply(
    table: &str,
    migration: &Migration,
    connection: &mut PgConnection,
    until: Instant,
) -> Result<(), MigrateError> {
    set(connection, &format!("SET statement_timeout = 0; SET lock_timeout = '{WAIT}'")).await?;
    let pauses = ExponentialBuilder::new().with_min_delay(FIRST_PAUSE).with_max_delay(LAST_PAUSE).with_jitter();
    let mut pauses = pauses.without_max_times().build();
    loop {
        match within(PATIENCE, async { connection.apply(table, migration).await }).await {
            Err(error) if is_contention(&error) && Instant::now() < until => {
                let pause = pauses.next().unwrap_or(LAST_PAUSE);
                tracing::warn!(
                    version = migration.version,
                    retry_in = ?pause,
                    "a migration waits for a table: pg_locks says which transaction holds it"
                );
                sleep(pause).await;
            }
            applied => return applied.map(drop),
        }
    }
}

fn is_contention(error: &MigrateError) -> bool {
    let (MigrateError::Execute(source) | MigrateError::ExecuteMigration(source, _)) = error else { return false };
    // A lock that wasn't granted in time, and a deadlock.
    let code = source.as_database_error().and_then(|refused| refused.code());
    code.is_some_and(|code| ["55P03", "40P01"].contains(&&*code))
}

/// Builds an index, for as long as that takes: it waits for earlier transactions, and delays no other.
///
/// If the process that began to build it ended, its backend went on, and held the lock of the migrations until it had built the index,
/// which is then only recorded. What an interruption of the backend left behind is dropped.
async fn build(
    table: &str,
    migration: &Migration,
    index: &str,
    connection: &mut PgConnection,
    options: &PgConnectOptions,
) -> Result<(), MigrateError> {
    set(connection, "SET statement_timeout = 0; SET lock_timeout = 0").await?;
    let failed = |error| MigrateError::ExecuteMigration(error, migration.version);
    if is_built(migration, index, connection).await.map_err(failed)? {
        return within(LIMIT, connection.skip(table, migration)).await;
    }
    let backend = within(LIMIT, async {
        Ok(sqlx::query_scalar::<_, i32>("SELECT pg_backend_pid()").fetch_one(&mut *connection).await?)
    });
    let backend = backend.await?;
    let built = async {
        let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS {index}");
        sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut *connection).await.map_err(failed)?;
        connection.apply(table, migration).await.map(|_| ())
    };
    tokio::select! {
        built = built => built,
        () = gone(backend, options) => Err(lost()),
    }
}

/// Returns whether there is a valid index of this name, and exactly as the migration would build it. That is asked of Postgres itself,
/// which writes a definition in its own words: the index is built on an empty table of the same columns.
async fn is_built(migration: &Migration, index: &str, connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let existing = sqlx::query_scalar::<_, String>(
        "SELECT pg_get_indexdef(indexrelid) FROM pg_index WHERE indexrelid = to_regclass($1) AND indisvalid",
    );
    let Some(existing) = existing.bind(index).fetch_optional(&mut *connection).await? else { return Ok(false) };
    let sql = migration.sql.as_str().replacen(" CONCURRENTLY ", " ", 1);
    let Some(table) = sql.split_once(" ON ").and_then(|(_, rest)| rest.split_whitespace().next()) else {
        return Ok(false);
    };
    sqlx::raw_sql("BEGIN").execute(&mut *connection).await?;
    let wanted = async {
        let create = format!("CREATE TEMPORARY TABLE {table} (LIKE {table})");
        sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut *connection).await?;
        sqlx::raw_sql(AssertSqlSafe(sql.clone())).execute(&mut *connection).await?;
        let definition = "SELECT pg_get_indexdef(('pg_temp.' || $1)::regclass)";
        sqlx::query_scalar::<_, String>(definition).bind(index).fetch_one(&mut *connection).await
    };
    let wanted = wanted.await;
    sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await?;
    // A role that may not create temporary tables builds the index anew.
    let Ok(wanted) = wanted else { return Ok(false) };
    // The schemas differ.
    let parts = |definition: &str| {
        let (head, rest) = definition.split_once(" USING ").unwrap_or((definition, ""));
        (head.starts_with("CREATE UNIQUE "), rest.to_owned())
    };
    Ok(parts(&existing) == parts(&wanted))
}

/// Returns when a backend certainly works no more.
async fn gone(backend: i32, options: &PgConnectOptions) {
    let works = async || {
        let mut connection = options.connect().await?;
        let works = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active')";
        let works = sqlx::query_scalar::<_, bool>(works).bind(backend).fetch_one(&mut connection).await?;
        let _ = connection.close().await;
        Ok::<_, sqlx::Error>(works)
    };
    let mut idle = 0;
    while idle < 2 {
        sleep(WATCH).await;
        match timeout(LIMIT, works()).await {
            // Between two statements it is idle for a moment.
            Ok(Ok(false)) => idle += 1,
            Ok(Ok(true)) => idle = 0,
            // A server that is away says nothing about it.
            Ok(Err(_)) | Err(_) => {}
        }
    }
}

async fn set(connection: &mut PgConnection, settings: &str) -> Result<(), MigrateError> {
    let set = sqlx::raw_sql(AssertSqlSafe(settings.to_owned()));
    within(LIMIT, async { Ok(set.execute(connection).await.map(drop)?) }).await
}

/// Returns the name of the index that a migration without a transaction builds.
fn concurrent_index(migration: &Migration) -> Option<&str> {
    let (before, after) = migration.sql.as_str().split_once(" INDEX CONCURRENTLY ")?;
    let creates = before.ends_with("CREATE") || before.ends_with("CREATE UNIQUE");
    after.split_whitespace().next().filter(|_| migration.no_tx && creates)
}

async fn within<T>(limit: Duration, step: impl Future<Output = Result<T, MigrateError>>) -> Result<T, MigrateError> {
    timeout(limit, step).await.unwrap_or_else(|_| Err(lost()))
}

fn lost() -> MigrateError {
    sqlx::Error::from(io::Error::new(ErrorKind::TimedOut, "no answer in time")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Anything else that an interruption leaves behind would make every later try fail.
    #[test]
    fn a_migration_without_a_transaction_is_one_index_that_can_be_dropped() {
        let migrator = sqlx::migrate!("../../migrations");
        let without: Vec<_> = migrator.iter().filter(|migration| migration.no_tx).collect();
        let names: Vec<_> = without.iter().filter_map(|migration| concurrent_index(migration)).collect();
        assert!(names.starts_with(&["submission_events_key", "submissions_labelled"]), "{names:?}");
        assert_eq!(names.len(), without.len(), "{names:?}");
        for migration in without {
            assert_eq!(migration.sql.as_str().matches(';').count(), 1, "{}", migration.description);
        }
    }
}
