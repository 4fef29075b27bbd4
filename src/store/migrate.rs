//! Applying the migrations that are missing.

use std::time::Duration;

use sqlx::{PgConnection, migrate::MigrateError};

/// Of the advisory lock under which one replica migrates: "sparkgate" as a number, nothing more.
const LOCK: i64 = 0x7370_6172_6b67_7465;
const TRY: Duration = Duration::from_millis(200);

/// Applies them while other replicas wait. They ask again and again instead of waiting in a statement: a statement that
/// waits keeps `CREATE INDEX CONCURRENTLY`, which waits for all others, from ever ending.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), MigrateError> {
    while !sqlx::query_scalar::<_, bool>("SELECT pg_try_advisory_lock($1)")
        .bind(LOCK)
        .fetch_one(&mut *connection)
        .await?
    {
        tokio::time::sleep(TRY).await;
    }
    // A newer release may have migrated already: it left what this one needs (migrations/README.md).
    let migrated = sqlx::migrate!().set_ignore_missing(true).set_locking(false).run(&mut *connection).await;
    sqlx::query("SELECT pg_advisory_unlock($1)").bind(LOCK).execute(connection).await?;
    migrated
}
