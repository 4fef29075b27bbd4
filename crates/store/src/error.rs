//! Errors of the database.

use std::{
    borrow::Cow,
    io::{self, ErrorKind},
    time::{Duration, Instant},
};

use sqlx::postgres::{PgDatabaseError, PgSeverity};

use sparkgate_traces::{KeyValue, Span, SpanKind, attribute};

use super::group_commit::Unanswered;
use sparkgate_metrics::metrics;

/// The error of a statement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database can't be reached or has no free connection: a retry may succeed.
    #[error("{action}: the database is not available")]
    Unavailable { action: &'static str, source: sqlx::Error },
    /// The database didn't confirm the statement, which may have taken effect.
    #[error("{action}: the database didn't confirm it")]
    InDoubt { action: &'static str, source: sqlx::Error },
    /// The statement or the data in the table is wrong.
    #[error("{action} failed")]
    Statement { action: &'static str, source: sqlx::Error },
    /// A row has values that this release can't read.
    #[error("submission {id}: its row can't be read")]
    Row { id: String, source: Box<dyn std::error::Error + Send + Sync> },
}

impl Error {
    /// Returns whether the server refused only this statement, because other transactions hold its rows or tables, or because
    /// it took too long: it had no effect, and other statements may well succeed. Otherwise, [`Error::Unavailable`] means that
    /// the database is unavailable to all statements.
    pub fn is_contention(&self) -> bool {
        /// Serialization failure, deadlock, lock timeout, statement timeout or cancelled by an operator.
        const CODES: [&str; 4] = ["40001", "40P01", "55P03", "57014"];
        let Self::Unavailable { source, .. } = self else { return false };
        match source {
            sqlx::Error::Database(refused) => refused.code().is_some_and(|code| CODES.contains(&code.as_ref())),
            sqlx::Error::Io(io) => {
                io.get_ref().and_then(|inner| inner.downcast_ref::<Shared>()).is_some_and(|shared| shared.is_contention)
            }
            _ => false,
        }
    }

    /// Returns whether all statements fail like this one: the same one may succeed in a moment. Not if other transactions hold its rows.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable { .. } | Self::InDoubt { .. }) && !self.is_contention()
    }

    /// Returns whether the server cancelled the statement because it took too long: one with fewer rows may succeed.
    pub fn is_timeout(&self) -> bool {
        let Self::Unavailable { source, .. } = self else { return false };
        source.as_database_error().and_then(sqlx::error::DatabaseError::code).is_some_and(|code| code == "57014")
    }

    /// Returns the kind of the error for metrics. A duplicate key is an answer like another, and so is a row that another one needs.
    fn kind(&self) -> Option<&'static str> {
        match self {
            Self::Statement { source: sqlx::Error::Database(said), .. }
                if said.is_unique_violation() || said.is_foreign_key_violation() =>
            {
                None
            }
            error if error.is_contention() => Some("contention"),
            Self::Unavailable { .. } | Self::InDoubt { .. } => Some("unavailable"),
            Self::Statement { .. } | Self::Row { .. } => Some("failed"),
        }
    }

    /// Converts an error that occurred after a statement was sent which must not be repeated unknowingly: unless the server
    /// itself said that it didn't carry the statement out, it may have.
    pub(super) fn after_sending(self) -> Self {
        match self {
            Self::Unavailable { action, source } | Self::Statement { action, source } if !is_refusal(&source) => {
                Self::InDoubt { action, source }
            }
            certain => certain,
        }
    }

    /// Converts an error of a later statement, if an earlier one has taken effect.
    pub(super) fn after(self, something: bool) -> Self {
        match self {
            Self::Unavailable { action, source } | Self::Statement { action, source } if something => {
                Self::InDoubt { action, source }
            }
            same => same,
        }
    }

    /// Returns whether the statement failed because another row refers to one that it would have deleted.
    pub(super) fn is_of_reference(&self) -> bool {
        matches!(self, Self::Statement { source: sqlx::Error::Database(said), .. } if said.is_foreign_key_violation())
    }

    /// Returns the error of a call whose group commit gave no answer.
    pub(super) fn unanswered(action: &'static str, why: Unanswered) -> Self {
        let in_doubt = matches!(why, Unanswered::Ended);
        let source = io::Error::other(why).into();
        if in_doubt { Self::InDoubt { action, source } } else { Self::Unavailable { action, source } }
    }

    /// Returns the error of a read whose group gave no answer.
    pub(super) fn unread(action: &'static str, why: Unanswered) -> Self {
        Self::Unavailable { action, source: io::Error::other(why).into() }
    }

    /// Returns the error of a statement that left out `count` rows, because other transactions have locked them.
    pub(super) fn rows_locked(action: &'static str, count: usize) -> Self {
        let message = format!("other transactions have locked {count} of the rows");
        Self::Unavailable { action, source: io::Error::other(Shared { message, is_contention: true }).into() }
    }

    fn of(action: &'static str, source: sqlx::Error) -> Self {
        // A server that is killed may stop in the middle of a message, such as its reply to a handshake.
        let broken = matches!(source, sqlx::Error::Protocol(_));
        if broken || is_outage(&source) {
            Self::Unavailable { action, source }
        } else {
            Self::Statement { action, source }
        }
    }

    /// Returns the kind of the error for a span: the SQLSTATE if the server gave one.
    fn span_kind(&self) -> Cow<'static, str> {
        let (kind, source) = match self {
            Self::Unavailable { source, .. } => ("unavailable", source),
            Self::InDoubt { source, .. } => ("in doubt", source),
            Self::Statement { source, .. } => ("statement", source),
            Self::Row { .. } => return "row".into(),
        };
        let code = source.as_database_error().and_then(|said| said.code());
        code.map_or_else(|| kind.into(), |code| code.into_owned().into())
    }

    pub(super) fn row(id: &str, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Row { id: id.to_owned(), source: Box::new(source) }
    }
}

/// The error of a statement that several calls shared, for one of them; or of rows that a statement left out.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Shared {
    message: String,
    is_contention: bool,
}

/// Returns the same error for another call that shared the statement.
pub(super) fn likewise(error: &Error) -> Error {
    let is_contention = error.is_contention();
    let again = |source: &sqlx::Error| {
        sqlx::Error::from(io::Error::other(Shared { message: source.to_string(), is_contention }))
    };
    match error {
        Error::Unavailable { action, source } => Error::Unavailable { action, source: again(source) },
        Error::InDoubt { action, source } => Error::InDoubt { action, source: again(source) },
        Error::Statement { action, source } => Error::Statement { action, source: again(source) },
        Error::Row { id, source } => Error::row(id, io::Error::other(source.to_string())),
    }
}

/// The length of a SQLSTATE.
const SQLSTATE: usize = 5;
/// Timeout of a statement. A statement that takes longer has lost its server: sqlx itself would wait forever.
const LIMIT: Duration = Duration::from_secs(10);

/// The operation of the metrics that stands for the wait of a request for a connection.
const CONNECTING: &str = "acquiring a connection";

/// Starts the span of a statement, which has no text and no values.
pub(super) fn statement_span(action: &'static str) -> Span {
    Span::child(action, SpanKind::Client, || [KeyValue::new(attribute::DB_SYSTEM_NAME, "postgresql")])
}

/// Marks the span of a statement that failed.
pub(super) fn mark<T>(span: &Span, answer: &Result<T, Error>) {
    if let Err(error) = answer
        && span.is_recorded()
    {
        let kind = error.span_kind();
        if kind.len() == SQLSTATE && kind.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase()) {
            span.set(attribute::DB_RESPONSE_STATUS_CODE, kind.clone());
        }
        span.fail(kind);
    }
}

/// Runs one statement with a timeout; `action` names it in the error, in the metrics and in its span.
pub(super) async fn within<T>(
    action: &'static str,
    statement: impl Future<Output = Result<T, sqlx::Error>> + Send,
) -> Result<T, Error> {
    let span = statement_span(action);
    let answer = in_time(action, action, statement).await;
    mark(&span, &answer);
    answer
}

/// Waits for a connection for a statement, with a timeout.
pub(super) async fn connected<T>(
    action: &'static str,
    acquired: impl Future<Output = Result<T, sqlx::Error>> + Send,
) -> Result<T, Error> {
    in_time(action, CONNECTING, acquired).await
}

async fn in_time<T>(
    action: &'static str,
    operation: &'static str,
    answer: impl Future<Output = Result<T, sqlx::Error>> + Send,
) -> Result<T, Error> {
    let begun = Instant::now();
    let answer = tokio::time::timeout(LIMIT, answer).await;
    let answer = answer.unwrap_or_else(|_| Err(io::Error::new(ErrorKind::TimedOut, "no answer in time").into()));
    let answer = answer.map_err(|source| Error::of(action, source));
    metrics().statement_seconds.with([operation]).observe(begun.elapsed().as_secs_f64());
    if let Some(kind) = answer.as_ref().err().and_then(Error::kind) {
        metrics().database_errors.with([kind]).inc();
    }
    answer
}

/// Returns whether the server itself said that it didn't carry the statement out. An error that ends the connection (FATAL,
/// PANIC) may follow the commit, and so may an error of reading the reply.
fn is_refusal(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(said) = error else { return false };
    let ended = said
        .try_downcast_ref::<PgDatabaseError>()
        .is_some_and(|said| matches!(said.severity(), PgSeverity::Fatal | PgSeverity::Panic));
    // Connection errors, shutdown, "statement completion unknown".
    let unknown = |code: &str| code.starts_with("08") || code.starts_with("57P0") || code == "40003";
    !ended && !said.code().is_some_and(|code| unknown(&code))
}

/// Returns whether an error is an outage or contention. SQLSTATE classes: 08 connection, 53 resources, 57 shutdown, start-up
/// and cancelled; 25006 a standby; and conflicts with other transactions (40001, 40P01, 55P03).
pub(super) fn is_outage(error: &sqlx::Error) -> bool {
    const CLASSES: [&str; 3] = ["08", "53", "57"];
    const CODES: [&str; 4] = ["25006", "40001", "40P01", "55P03"];
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => true,
        sqlx::Error::Database(refused) => refused
            .code()
            .is_some_and(|code| CLASSES.iter().any(|class| code.starts_with(class)) || CODES.contains(&code.as_ref())),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_cannot_be_read_leaves_the_statement_in_doubt() {
        let lost = || sqlx::Error::Io(ErrorKind::ConnectionReset.into());
        let unread = || sqlx::Error::Protocol("unexpected message".to_owned());
        for source in [lost, unread] {
            let error = Error::of("accepting", source()).after_sending();
            assert!(matches!(error, Error::InDoubt { .. }), "{error:?}");
        }
    }
}
