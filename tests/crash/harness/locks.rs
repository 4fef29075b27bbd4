//! Other users of the database: they lock rows and tables, leave transactions open and terminate backends.

use std::time::Duration;

use sparkgate_testing::dice::Dice;
use sqlx::{ConnectOptions, Connection, Executor, PgConnection, PgPool};
use tokio::time::{sleep, timeout};

const LIMIT: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy)]
enum Hold {
    /// Locks some live rows, for seconds.
    Rows,
    /// Locks the whole table, for a moment.
    Table,
    /// Leaves a transaction open that has written.
    Transaction,
    /// Terminates all backends of the program.
    Backends,
}

/// Holds one of these locks for a while. A server that is down has no locks.
pub(crate) async fn hold(pool: &PgPool, dice: &mut Dice) {
    let hold = dice.weighed(&[(4, Hold::Rows), (2, Hold::Table), (2, Hold::Transaction), (2, Hold::Backends)]);
    let (statement, time) = match hold {
        Hold::Rows => (
            "BEGIN; SELECT FROM submissions WHERE state IN ('QUEUED', 'LAUNCHING', 'PENDING', 'RUNNING')
             ORDER BY number LIMIT 10 FOR UPDATE",
            dice.millis(1000, 6000),
        ),
        Hold::Table => ("BEGIN; LOCK TABLE submissions IN EXCLUSIVE MODE", dice.millis(200, 1500)),
        Hold::Transaction => (
            "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT pg_current_xact_id(); SELECT count(*) FROM submissions",
            dice.millis(2000, 8000),
        ),
        Hold::Backends => (
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name LIKE 'sparkgate%'",
            Duration::ZERO,
        ),
    };
    // A connection of its own: the locks end with it, however this task ends.
    let Ok(Ok(mut connection)) = timeout(LIMIT, connect(pool)).await else { return };
    if matches!(timeout(LIMIT, connection.execute(statement)).await, Ok(Ok(_))) {
        sleep(time).await;
    }
    let _ = timeout(LIMIT, connection.close()).await;
}

async fn connect(pool: &PgPool) -> Result<PgConnection, sqlx::Error> {
    pool.connect_options().as_ref().clone().connect().await
}
