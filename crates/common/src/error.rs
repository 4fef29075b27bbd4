//! Errors of use cases.

use tokio::task::JoinError;

use sparkgate_cluster as cluster;
use sparkgate_files as files;
use sparkgate_metrics::metrics;
use sparkgate_policy::Violation;
use sparkgate_spark::Refusal;
use sparkgate_store as store;
use sparkgate_submission::SubmissionId;

pub use sparkgate_submission::error_chain;

/// The error of a use case.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is invalid; the text is for the client.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The caller may not do this; the text is for the caller.
    #[error("{0}")]
    Denied(String),
    /// As many submissions of the tenant wait as its limit allows.
    #[error("{most} submissions of tenant {tenant} wait to be launched, as many as its limit `queued` allows")]
    Full { tenant: String, most: u64 },
    /// The records of the tenant's submissions would take more bytes than its limit allows.
    #[error(
        "the requests, objects and logs that are kept of the submissions of tenant {tenant} take {bytes} bytes; with this one they would \
         exceed its limit `recordBytes`, {most}"
    )]
    RecordsFull { tenant: String, bytes: u64, most: u64 },
    /// Other large drivers of the tenant are being built, as many as its share allows: nothing was done, and a retry may succeed.
    #[error("other large drivers of tenant {tenant} are being built, as many as its share allows")]
    Busy { tenant: String },
    /// The driver breaks rules of its tenant's policy.
    #[error("the policy of tenant {tenant} refuses the driver: {}", listed(.violations))]
    Policy { tenant: String, violations: Vec<Violation> },
    /// A queue doesn't accept the submission; the text is for the client.
    #[error(transparent)]
    QueueRefused(Refusal),
    /// As many submissions wait in the queue as it allows.
    #[error("{most} submissions wait in queue {queue}, as many as its limit `maxQueued` allows")]
    BacklogFull { queue: String, most: u64 },
    /// The submission would have to wait in its queue, and its client can't wait.
    #[error("queue {queue} can't admit it now, and a client of this API can't wait: {reason}")]
    WouldWait { queue: String, reason: String },
    /// The idempotency key was used with a different request before.
    #[error("the idempotency key {key:?} was used for a different request before: submission {by}")]
    KeyReused { key: String, by: SubmissionId },
    /// A submission of the tenant has the same id of a client.
    #[error("{client_id:?} is the client's id of another submission: {by}")]
    ClientIdTaken { client_id: String, by: SubmissionId },
    /// A live submission of the namespace has the same name, and both ask for a unique one.
    #[error("{name:?} is the name of a live submission in namespace {namespace}: {by}")]
    NameTaken { name: String, namespace: String, by: SubmissionId },
    /// The database can't be reached: nothing was done, and a retry may succeed.
    #[error("the database is not available")]
    Unavailable(#[source] store::Error),
    /// The write of a submission was not confirmed. If the submission was accepted, it has this id.
    #[error("the database didn't confirm the write of submission {id}")]
    InDoubt { id: SubmissionId, source: store::Error },
    /// The database didn't confirm another write, which may have been committed. A retry is safe.
    #[error("the database didn't confirm the request, which may have taken effect")]
    PerhapsDone(#[source] store::Error),
    /// The cluster doesn't answer.
    #[error("the cluster is not available")]
    ClusterUnavailable(#[source] cluster::Error),
    /// The same, if only the text of the error is left.
    #[error("{0}")]
    Unanswered(String),
    /// The file store doesn't answer: nothing was done, and a retry may succeed.
    #[error("the file store is not available")]
    FilesUnavailable(#[source] files::Error),
    /// The task of the use case ended early, after it may have taken effect.
    #[error("the request's task ended early")]
    BrokenOff(#[source] JoinError),
    /// The same for the write of a submission, which may have been accepted.
    #[error("the task that wrote a submission ended early")]
    SubmitBrokenOff(#[source] JoinError),
    /// An internal error; nothing was done.
    #[error("{0}")]
    Internal(String, #[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Returns violations as one text.
pub fn listed(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
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

/// Counts a call of the file store that failed.
pub fn count_failure(error: &files::Error) {
    if let files::Error::Unavailable { action, .. } = error {
        metrics().file_store_errors.with([*action]).inc();
    }
}

impl From<files::Error> for Error {
    fn from(error: files::Error) -> Self {
        count_failure(&error);
        match error {
            files::Error::Unavailable { .. } | files::Error::Foreign { .. } => Self::FilesUnavailable(error),
            files::Error::Missing { .. } => {
                Self::Internal("the object of a file is gone from its store".to_owned(), Box::new(error))
            }
        }
    }
}

impl Error {
    /// Returns whether a retry may succeed.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Unavailable(_)
            | Self::InDoubt { .. }
            | Self::PerhapsDone(_)
            | Self::SubmitBrokenOff(_)
            | Self::ClusterUnavailable(_)
            | Self::FilesUnavailable(_)
            | Self::Busy { .. }
            | Self::WouldWait { .. }
            | Self::Unanswered(_) => true,
            Self::Refused(_)
            | Self::Denied(_)
            | Self::Policy { .. }
            | Self::QueueRefused(_)
            | Self::BacklogFull { .. }
            | Self::Full { .. }
            | Self::RecordsFull { .. }
            | Self::KeyReused { .. }
            | Self::ClientIdTaken { .. }
            | Self::NameTaken { .. }
            | Self::BrokenOff(_)
            | Self::Internal(..) => false,
        }
    }
}

impl Error {
    /// Returns the reason for metrics and spans.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Refused(_) => "invalid",
            Self::Denied(_) => "denied",
            Self::Policy { .. } => "policy",
            Self::QueueRefused(_) => "queue",
            Self::Full { .. }
            | Self::BacklogFull { .. }
            | Self::WouldWait { .. }
            | Self::RecordsFull { .. }
            | Self::Busy { .. } => "full",
            Self::KeyReused { .. } => "key_reused",
            Self::ClientIdTaken { .. } => "client_id_taken",
            Self::NameTaken { .. } => "name_taken",
            Self::Unavailable(_) => "database",
            Self::InDoubt { .. } | Self::PerhapsDone(_) | Self::SubmitBrokenOff(_) => "in_doubt",
            Self::FilesUnavailable(_) => "files",
            Self::ClusterUnavailable(_) | Self::Unanswered(_) | Self::BrokenOff(_) | Self::Internal(..) => "internal",
        }
    }

    /// Returns whether the store of files belongs to another database, of which this one is a copy.
    pub fn is_of_a_copy(&self) -> bool {
        matches!(self, Self::FilesUnavailable(files::Error::Foreign { .. }))
    }

    /// Returns whether other transactions hold the rows or tables that a statement needs. The statement had no effect, and the
    /// database serves other requests.
    pub fn is_contention(&self) -> bool {
        matches!(self, Self::Unavailable(error) | Self::PerhapsDone(error) if error.is_contention())
    }
}
