//! Postgres, the only layer that uses sqlx. Every change of a state is one guarded statement that also writes its event.

mod accept;
mod access_generations;
mod advance;
mod api_keys;
mod attempts;
mod audit;
mod browser_sessions;
mod claim;
mod clean_up;
mod cluster_namespaces;
mod connect;
mod connections;
mod deadlines;
mod document;
mod error;
mod events;
mod executors;
mod figures;
mod file_list;
mod file_uploads;
mod files;
mod gone_tenants;
mod group_commit;
mod held;
mod history;
mod inspect;
mod installation;
mod kept_logs;
mod kill;
mod launches;
mod lease;
mod livy;
mod logs;
mod migrate;
mod numbering;
mod overview;
mod primary;
mod query;
mod queues;
mod recorded_drivers;
mod request;
mod retry;
mod row;
mod scope;
mod sealed;
mod session;
mod spark_summaries;
mod state_log;
mod submissions;
mod traces;
mod unadmitted;
mod usage;
mod webhooks;

use std::{sync::Arc, time::Duration};

use connections::Connections;
use error::within;
use history::Histories;
use sqlx::PgPool;
use tokio::sync::Semaphore;

pub use accept::{
    Accepted, Cost, Drawn, InQueue, KeySpace, NewSubmission, Options, ReachedBound, TenantBounds, accept_on,
};
pub use api_keys::{ApiKey, KeyRecord, NewApiKey};
pub use attempts::{AttemptRecord, Before};
pub use audit::{Actor, AuditEntry, AuditFilter, AuditLog, AuditNote, AuditSubject, Denial};
pub use browser_sessions::{BrowserSession, BrowserSessionId, NewBrowserSession};
pub use claim::{Claimed, Room, Task};
pub use clean_up::EndedPod;
pub use connect::{ConnectError, DatabaseSettings};
pub use deadlines::Overdue;
pub use document::SubmissionDocument;
pub use error::Error;
pub use events::{About, Event};
pub use executors::LiveExecutor;
pub use figures::{LiveCount, PoolUse};
pub use file_list::{DeletedFile, ListedFile};
pub use file_uploads::{AddedPart, FilePart, FileUpload, Received};
pub use files::{AddedFile, FileRecord, NewFile, UsedFile};
pub use gone_tenants::EndedWithTenants;
pub use history::LostNumbers;
pub use inspect::{Inspection, Migrations, OldSnapshot, Server};
pub use installation::{Generation, InstallationKeys};
pub use kept_logs::{KeptLog, LogEnd};
pub use kill::KillAnswer;
pub use lease::{Renewed, replica};
pub use livy::LivyBatch;
pub use logs::LogTarget;
pub use numbering::{Horizon, NUMBERED_AT_ONCE, Numbered};
pub use overview::{Day, HourCount, LeaseRecord, OwnerCount, Start, StateCount, WatchRecord};
pub use query::{Live, Record};
pub use queues::{
    Admission, Backlog, History, HoldAnswer, Largest, Place, QueueRound, QueueStanding, QueueState, StoredQueueState,
    WaitingHead,
};
pub use recorded_drivers::RecordedDriver;
pub use scope::{DEFAULT_TENANT, Scope, Scoped};
pub use sealed::Sealed;
pub use session::PLANNED_ONCE;
pub use spark_summaries::{AskedDriver, SparkSummary};
pub use submissions::{ExecutorCounts, Filter, Found, Held, Page, Submission};
pub use traces::{EndedAttempt, EndedTrace};
pub use usage::{GroupBy, Price, Prices, SubmissionUsage, Usage, UsageFilter, UsageReport, Used};
pub use webhooks::{
    Delivery, DueDelivery, DueWebhook, NewWebhook, Queued, Settled, StoredSecrets, TriedDelivery, Webhook,
    WebhookFilter,
};

/// Group commits of concurrent calls.
#[derive(Debug, Default)]
struct Groups {
    accept: accept::Groups,
    launches: launches::Groups,
    leases: lease::Groups,
}

/// The submissions, in Postgres. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    /// For requests, which should fail fast rather than wait.
    pool: PgPool,
    /// For requests that accept a submission.
    accepting: Connections,
    /// For workers, which wait rather than give up their work.
    patient: Connections,
    /// How long a request waits for a connection.
    patience: Duration,
    /// Limits requests that may read many rows.
    long_reads: Arc<Semaphore>,
    /// For leases, which must not wait for other statements.
    leases: PgPool,
    groups: Arc<Groups>,
    histories: Arc<Histories>,
    /// Where entries of the audit go besides the database.
    audit_log: Option<Arc<dyn AuditLog>>,
}

impl Store {
    /// Creates a store on a migrated database, in which requests wait for connections as long as workers do.
    pub fn new(pool: PgPool) -> Self {
        Self {
            accepting: Connections::shared(pool.clone()),
            patient: Connections::shared(pool.clone()),
            leases: pool.clone(),
            pool,
            patience: Duration::from_secs(8),
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
