//! The store: its connections, and what its statements share.

use std::{sync::Arc, time::Duration};

use sqlx::PgPool;
use tokio::sync::Semaphore;

use super::{
    accept::groups::Groups as AcceptGroups,
    audit_entry::AuditLog,
    connections::Connections,
    document::view::DocumentView,
    error::{Error, within},
    grouped_reads::groups::GroupedReads,
    history::Histories,
    launches::groups::Groups as LaunchGroups,
    lease::groups::Groups as LeaseGroups,
    queues::Entrances,
    record::row::RecordView,
};

/// Group commits of concurrent calls.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) accept: AcceptGroups,
    pub(super) launches: LaunchGroups,
    pub(super) leases: LeaseGroups,
    pub(super) entrances: Entrances,
    pub(super) records: GroupedReads<RecordView>,
    pub(super) documents: GroupedReads<DocumentView>,
}

/// The submissions, in Postgres. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    /// For requests, which should fail fast rather than wait.
    pub(super) pool: PgPool,
    /// For requests that accept a submission.
    pub(super) accepting: Connections,
    /// For workers, which wait rather than give up their work.
    pub(super) patient: Connections,
    /// How long a request waits for a connection.
    pub(super) patience: Duration,
    /// Limits requests that may read many rows.
    pub(super) long_reads: Arc<Semaphore>,
    /// For leases, which must not wait for other statements.
    pub(super) leases: PgPool,
    pub(super) groups: Arc<Groups>,
    pub(super) histories: Arc<Histories>,
    /// Where entries of the audit go besides the database.
    pub(super) audit_log: Option<Arc<dyn AuditLog>>,
}

impl Store {
    /// Creates a store on one pool of a migrated database, for tests: requests wait for connections as long as a busy machine needs.
    pub fn new(pool: PgPool) -> Self {
        Self {
            accepting: Connections::shared(pool.clone()),
            patient: Connections::shared(pool.clone()),
            leases: pool.clone(),
            pool,
            patience: Duration::from_secs(60),
            long_reads: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            groups: Arc::default(),
            histories: Arc::default(),
            audit_log: None,
        }
    }

    /// Returns how often the database turned out to have another history than before. The claims and leases of this process
    /// are of the history in which they were acquired.
    pub fn history(&self) -> u64 {
        self.histories.count()
    }

    /// Checks that the database answers.
    pub async fn ping(&self) -> Result<(), Error> {
        let action = "checking the database";
        let mut connection = self.connection(action).await?;
        within(action, sqlx::query("SELECT 1").execute(&mut *connection)).await?;
        Ok(())
    }

    pub async fn close(&self) {
        self.pool.close().await;
        self.accepting.close().await;
        self.patient.close().await;
        self.leases.close().await;
    }
}
