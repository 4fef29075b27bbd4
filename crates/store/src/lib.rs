//! Postgres, the only layer that uses sqlx. Every change of a state is one guarded statement that also writes its event.

mod accept;
mod access_generations;
mod actor;
mod advance;
mod api_keys;
mod attempts;
mod audit;
mod audit_entry;
mod browser_sessions;
mod claim;
mod clean_up;
mod cluster_namespaces;
mod connect;
mod connect_sessions;
mod connections;
mod counted_ends;
mod deadlines;
mod document;
mod earlier_attempts;
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
mod late;
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
mod scoped;
mod sealed;
mod session;
mod spark_summaries;
mod state_log;
mod store;
mod submissions;
mod traces;
mod unadmitted;
mod usage;
mod webhooks;

pub use accept::{
    Accepted, Cost, Drawn, InQueue, KeySpace, NewSubmission, Options, ReachedBound, TenantBounds, accept_on,
};
pub use actor::{Actor, AuditNote, Denial};
pub use api_keys::{ApiKey, KeyRecord, NewApiKey};
pub use attempts::{AttemptRecord, Before};
pub use audit::{AuditFilter, AuditSubject};
pub use audit_entry::{AuditEntry, AuditLog};
pub use browser_sessions::{BrowserSession, BrowserSessionId, NewBrowserSession};
pub use claim::{Claimed, Room, Task};
pub use clean_up::EndedPod;
pub use connect::{ConnectError, DatabaseSettings};
pub use connect_sessions::{ConnectSession, NewConnectSession, OpenedSession};
pub use deadlines::Overdue;
pub use document::{StartupTimes, SubmissionDocument};
pub use earlier_attempts::{EarlierAttempt, FullMemory, MemoryFailure};
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
pub use late::{LateRun, Lateness};
pub use lease::{Renewed, replica};
pub use livy::LivyBatch;
pub use logs::LogTarget;
pub use numbering::{Horizon, NUMBERED_AT_ONCE, Numbered};
pub use overview::{Day, HourCount, LeaseRecord, OwnerCount, Start, StateCount, WatchRecord};
pub use query::{Live, Record};
pub use queues::{
    Admission, Backlog, COUNTED_IN_LISTS, Changed, Destination, HoldAnswer, InBacklog, Largest, Matching, Move, Moved,
    Place, QueueRound, QueueStanding, QueueState, StoredQueueState, ToRequeue, WaitingHead, Waits,
};
pub use recorded_drivers::RecordedDriver;
pub use scope::{DEFAULT_TENANT, Scope};
pub use scoped::Scoped;
pub use sealed::Sealed;
pub use session::PLANNED_ONCE;
pub use spark_summaries::{AskedDriver, RunUse, SparkSummary};
pub use store::Store;
pub use submissions::{ExecutorCounts, Filter, Found, Held, Page, Submission};
pub use traces::{EndedAttempt, EndedTrace};
pub use usage::{GroupBy, Price, Prices, SubmissionUsage, Usage, UsageFilter, UsageReport, Used};
pub use webhooks::{
    Delivery, DueDelivery, DueWebhook, NewWebhook, Queued, Settled, StoredSecrets, TriedDelivery, Webhook,
    WebhookFilter,
};
