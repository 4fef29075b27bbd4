//! Applies pending migrations.

use std::{
    io::{self, ErrorKind},
    time::{Duration, Instant},
};

use sqlx::{
    AssertSqlSafe, PgConnection,
    migrate::{Migrate, MigrateError, Migration, Migrator},
};
use tokio::time::timeout;

/// Key of the advisory lock under which one replica migrates: "sparkgate" as a number, nothing more.
const LOCK: i64 = 0x7370_6172_6b67_7465;
const TRY: Duration = Duration::from_millis(200);
/// After this time, waiting for the lock is logged, once.
const SILENT: Duration = Duration::from_secs(5);

/// Timeout of a small statement. A statement that takes longer has lost its server: sqlx itself would wait forever.
const LIMIT: Duration = Duration::from_secs(10);
/// Timeout of all pending migrations together.
const MIGRATIONS: Duration = Duration::from_secs(15 * 60);

/// Applies pending migrations while other replicas wait. Those poll for the lock instead of waiting in a statement: a waiting
/// statement keeps `CREATE INDEX CONCURRENTLY`, which waits for all others, from ever finishing.
///
/// If none is pending, this only reads, so that a role without the right to define or lock objects is sufficient.
///
/// The connection has to be closed afterwards: its settings are unusual, and after an error it may hold the lock.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), MigrateError> {
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
        within(MIGRATIONS, apply_all(&migrator.table_name, &missing, connection)).await?;
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
        tokio::time::sleep(TRY).await;
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

async fn apply_all(table: &str, missing: &[&Migration], connection: &mut PgConnection) -> Result<(), MigrateError> {
    if !has_table(table, connection).await? {
        connection.ensure_migrations_table(table).await?;
    }
    for migration in missing {
        // While a statement waits for a table lock, all later statements on the table wait, too. But building an index
        // CONCURRENTLY waits for earlier transactions, delays no other, and would be left incomplete by a timeout.
        let wait = if migration.no_tx { "0" } else { "5s" };
        let settings = format!("SET statement_timeout = 0; SET lock_timeout = '{wait}'");
        sqlx::raw_sql(AssertSqlSafe(settings)).execute(&mut *connection).await?;
        if let Some(index) = concurrent_index(migration) {
            // An earlier, interrupted try left it, incomplete or not recorded.
            let drop = format!("DROP INDEX CONCURRENTLY IF EXISTS {index}");
            let dropped = sqlx::raw_sql(AssertSqlSafe(drop)).execute(&mut *connection).await;
            dropped.map_err(|error| MigrateError::ExecuteMigration(error, migration.version))?;
        }
        connection.apply(table, migration).await?;
    }
    Ok(())
}

/// Returns the name of the index that a migration without a transaction builds.
fn concurrent_index(migration: &Migration) -> Option<&str> {
    let (before, after) = migration.sql.as_str().split_once(" INDEX CONCURRENTLY ")?;
    let creates = before.ends_with("CREATE") || before.ends_with("CREATE UNIQUE");
    after.split_whitespace().next().filter(|_| migration.no_tx && creates)
}

async fn within<T>(limit: Duration, step: impl Future<Output = Result<T, MigrateError>>) -> Result<T, MigrateError> {
    let late = || sqlx::Error::from(io::Error::new(ErrorKind::TimedOut, "no answer in time"));
    timeout(limit, step).await.unwrap_or_else(|_| Err(late().into()))
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
