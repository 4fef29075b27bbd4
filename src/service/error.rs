//! What a use case can fail with.

use crate::{cluster, spark::Refusal, store, submission::SubmissionId};

/// A use case failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is at fault; the text is for its sender.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The idempotency key came with another request before.
    #[error("the idempotency key {key:?} was used for another request before, which is submission {by}")]
    KeyReused { key: String, by: SubmissionId },
    /// A live submission has the name, and one of the two is to have it for itself.
    #[error("{name:?} is the name of a live submission in namespace {namespace}: {by}")]
    NameTaken { name: String, namespace: String, by: SubmissionId },
    /// The database can't be reached: nothing was done, the same request may work in a moment.
    #[error("the database is not available")]
    Unavailable(#[source] store::Error),
    /// The write of a submission was not confirmed: it may be kept or not. If it is, then under this id.
    #[error("the database went away while submission {id} was being written")]
    InDoubt { id: SubmissionId, source: store::Error },
    /// The database went away during another write, which may be done or not. Asking again does no harm.
    #[error("the database went away meanwhile")]
    PerhapsDone(#[source] store::Error),
    /// The cluster gives no answer just now.
    #[error("the cluster is not available")]
    ClusterUnavailable(#[source] cluster::Error),
    /// The same, where only the words are left of it.
    #[error("{0}")]
    Unanswered(String),
    /// A fault of ours; nothing was done.
    #[error("{0}")]
    Internal(String, #[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Unavailable { .. } => Self::Unavailable(error),
            store::Error::InDoubt { .. } => Self::PerhapsDone(error),
            store::Error::Statement { .. } | store::Error::Row { .. } => {
                Self::Internal("using the database failed".to_owned(), Box::new(error))
            }
        }
    }
}

impl From<cluster::Error> for Error {
    fn from(error: cluster::Error) -> Self {
        match error {
            cluster::Error::Unavailable { .. } | cluster::Error::Conflict { .. } => Self::ClusterUnavailable(error),
            other => Self::Internal("using the cluster failed".to_owned(), Box::new(other)),
        }
    }
}

impl Error {
    /// Whether the same call may succeed in a while.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unavailable(_)
            | Self::InDoubt { .. }
            | Self::PerhapsDone(_)
            | Self::ClusterUnavailable(_)
            | Self::Unanswered(_) => true,
            Self::Refused(_) | Self::KeyReused { .. } | Self::NameTaken { .. } | Self::Internal(..) => false,
        }
    }
}

impl Error {
    /// Whether others hold the rows or tables that a statement needs: it did nothing, and the database serves all else.
    pub(super) fn is_contention(&self) -> bool {
        matches!(self, Self::Unavailable(error) | Self::PerhapsDone(error) if error.is_contention())
    }
}

/// The error and its causes in one line, for logs and for messages to users.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        // Some libraries repeat their cause in their own text.
        if !text.contains(&words) {
            text.push_str(": ");
            text.push_str(&words);
        }
        cause = error.source();
    }
    text
}
