//! What can go wrong with the database.

/// A statement failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database can't be reached or has no connection to spare: the same call may work later.
    #[error("{action}: the database is not available")]
    Unavailable { action: &'static str, source: sqlx::Error },
    /// The statement or the data in the table is at fault.
    #[error("{action} failed")]
    Statement { action: &'static str, source: sqlx::Error },
    /// A row holds what this version can't read.
    #[error("submission {id}: its row can't be read")]
    Row { id: String, source: Box<dyn std::error::Error + Send + Sync> },
}

impl Error {
    /// For `map_err`: names what was being done.
    pub(super) fn of(action: &'static str) -> impl FnOnce(sqlx::Error) -> Self {
        move |source| {
            if is_outage(&source) { Self::Unavailable { action, source } } else { Self::Statement { action, source } }
        }
    }

    pub(super) fn row(id: &str, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Row { id: id.to_owned(), source: Box::new(source) }
    }
}

/// SQLSTATE classes: 08 connection, 53 resources, 57P0x shutdown and start-up, 25006 a standby.
fn is_outage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => true,
        sqlx::Error::Database(refused) => refused.code().is_some_and(|code| {
            code.starts_with("08") || code.starts_with("53") || code.starts_with("57P0") || code == "25006"
        }),
        _ => false,
    }
}
