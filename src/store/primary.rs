//! Nothing is read or decided on a standby: what it doesn't know yet looks like what never was. While a fail-over is
//! under way a name or a pooler may lead there.

use futures::FutureExt;
use sqlx::{
    PgConnection, Row,
    postgres::{PgPoolOptions, PgRow},
};

/// A standby says `on` to the second whatever is set; so does a primary that takes no writes, which is being replaced.
const QUESTION: &str = "SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'";

/// Whether this connection leads to the server that takes writes.
pub(super) async fn is_primary(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let row: PgRow = sqlx::raw_sql(QUESTION).fetch_one(connection).await?;
    row.try_get(0)
}

/// Connections of this pool lead to a primary when they are made, and each time that they are given out: others are
/// closed. This takes the place of the ping that sqlx does itself.
pub(super) fn primary_only(options: PgPoolOptions) -> PgPoolOptions {
    options
        .test_before_acquire(false)
        .after_connect(|connection, _| made(connection).boxed())
        .before_acquire(|connection, _| is_primary(connection).boxed())
}

async fn made(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    if is_primary(connection).await? {
        return Ok(());
    }
    Err(sqlx::Error::Configuration("the server is a standby, or takes no writes".into()))
}
