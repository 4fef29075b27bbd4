//! Applying the migrations that are missing.

use std::{
    io::{self, ErrorKind},
    time::{Duration, Instant},
};

use sqlx::{
    PgConnection,
    migrate::{Migrate, MigrateError, Migration, Migrator},
};
use tokio::time::timeout;

/// Of the advisory lock under which one replica migrates: "sparkgate" as a number, nothing more.
const LOCK: i64 = 0x7370_6172_6b67_7465;
const TRY: Duration = Duration::from_millis(200);
/// Who waits longer than this for the lock says so, once.
const SILENT: Duration = Duration::from_secs(5);

/// How long a small statement may take. Whoever takes longer has lost its server: sqlx itself would wait for ever.
const LIMIT: Duration = Duration::from_secs(10);
/// How long all the missing migrations may take.
const MIGRATIONS: Duration = Duration::from_secs(15 * 60);

/// Applies them while other replicas wait. They ask again and again instead of waiting in a statement: a statement that
/// waits keeps `CREATE INDEX CONCURRENTLY`, which waits for all others, from ever ending.
///
/// The connection is to be closed afterwards: its settings aren't the usual ones, and after an error it may hold the lock.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), MigrateError> {
    lock(connection).await?;
    // A newer release may have migrated already: it left what this one needs (migrations/README.md).
    let mut migrator = sqlx::migrate!();
    migrator.set_ignore_missing(true).set_locking(false);
    let missing = within(LIMIT, missing(&migrator, connection)).await?;
    if !missing.is_empty() {
        let versions: Vec<i64> = missing.iter().map(|migration| migration.version).collect();
        tracing::info!(?versions, "migrating the database");
    }
    // While a statement waits for a table, all who come after it wait too. But an index that is built CONCURRENTLY would
    // be left half done.
    if missing.iter().all(|migration| !migration.no_tx) {
        within(LIMIT, async { Ok(sqlx::query("SET lock_timeout = '5s'").execute(&mut *connection).await?) }).await?;
    }
    let limit = if missing.is_empty() { LIMIT } else { MIGRATIONS };
    within(limit, migrator.run(&mut *connection)).await?;
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

async fn missing<'m>(
    migrator: &'m Migrator,
    connection: &mut PgConnection,
) -> Result<Vec<&'m Migration>, MigrateError> {
    connection.ensure_migrations_table(&migrator.table_name).await?;
    let applied = connection.list_applied_migrations(&migrator.table_name).await?;
    let is_missing = |migration: &&Migration| applied.iter().all(|applied| applied.version != migration.version);
    Ok(migrator.iter().filter(is_missing).collect())
}

async fn within<T>(limit: Duration, step: impl Future<Output = Result<T, MigrateError>>) -> Result<T, MigrateError> {
    let late = || sqlx::Error::from(io::Error::new(ErrorKind::TimedOut, "no answer in time"));
    timeout(limit, step).await.unwrap_or_else(|_| Err(late().into()))
}
