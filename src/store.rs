//! Postgres, the only layer that says sqlx. Every change of a state is one guarded statement that also writes its event.

mod accept;
mod advance;
mod claim;
mod connect;
mod error;
mod kill;
mod query;
mod row;

use sqlx::PgPool;

pub use accept::NewSubmission;
pub use advance::{Placement, Progress};
pub use claim::{Claimed, Task};
pub use connect::{ConnectError, DatabaseSettings};
pub use error::Error;
pub use query::{Live, Record};

/// The submissions, in Postgres. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    pool: PgPool,
}

impl Store {
    /// A store on a migrated database.
    pub fn new(pool: PgPool) -> Self {
        Self { pool }
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), Error> {
        sqlx::query("SELECT 1")
            .execute(&self.pool)
            .await
            .map_err(Error::of("asking the database for a sign of life"))?;
        Ok(())
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }
}
