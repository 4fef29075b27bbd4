//! Logs of drivers and executors: from their pods while these exist, then from a store of logs, or from the archive.

mod archive;
mod follow;
mod keep;
mod keeper;
mod kept;
mod lines;
mod own_output;
mod read;
mod stored;
mod sweep;
mod target;
mod witness;
mod writer;

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::stream::BoxStream;
use tokio_util::sync::CancellationToken;

use self::keeper::Keeper;
use sparkgate_cluster::Cluster;
use sparkgate_common::{error::Error, rate_limits::Exceeded, shares::Shares, tenant_slots::TenantSlots};
use sparkgate_files::CollectedLogs;
use sparkgate_store::Store;
use sparkgate_tenancy::access_file::AccessFile;

pub use self::stored::LogStoreSettings;

/// Maximum number of logs of one namespace that a process reads concurrently; of all, twice as many. Each one holds a stream of the API server.
const READERS: usize = 200;

/// Maximum number of concurrent lists of events in one namespace: an API server may have to read all its events for those of
/// one pod.
const EVENT_LISTS: usize = 4;

/// Maximum number of failed drivers of one namespace that are archived concurrently before their end is recorded.
const EARLY: usize = 16;

/// The logs and the events of pods.
pub struct DriverLogs {
    store: Store,
    cluster: Cluster,
    /// How much of the end of a driver's log is archived, in bytes.
    kept_log: usize,
    /// Stores the logs of pods, if there is a store for them.
    keeper: Option<Keeper>,
    /// What the operator's collector writes, if there is one.
    collected: Option<CollectedLogs>,
    /// Limits the logs that are read concurrently.
    readers: Shares,
    /// The readers of each tenant.
    of_tenants: TenantSlots,
    /// Limits the concurrent lists of events.
    event_lists: Shares,
    /// Limits the logs that are read before the end of their driver is recorded.
    early: Shares,
    /// Cancelled when this process shuts down, to end the streams to clients.
    closing: CancellationToken,
    access: Arc<AccessFile>,
}

impl DriverLogs {
    pub fn new(
        store: Store,
        cluster: Cluster,
        kept_log: usize,
        closing: CancellationToken,
        access: Arc<AccessFile>,
    ) -> Self {
        let (readers, event_lists) = (Shares::new(READERS), Shares::new(EVENT_LISTS));
        let (early, of_tenants) = (Shares::new(EARLY), TenantSlots::new("logReaders"));
        let (keeper, collected) = (None, None);
        Self { store, cluster, kept_log, keeper, collected, readers, of_tenants, event_lists, early, closing, access }
    }
}

impl DriverLogs {
    /// Returns how many logs are being read for clients.
    pub fn readers(&self) -> usize {
        self.readers.held()
    }

    /// Returns how many of them the callers of each tenant read. Callers that read all tenants aren't counted.
    pub fn readers_of_tenants(&self) -> BTreeMap<String, u32> {
        self.of_tenants.held()
    }
}

/// Which log, and which part of it, to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogRequest {
    /// The id of an executor; the driver if `None`.
    pub executor: Option<i64>,
    /// The number of an attempt; the current one if `None`.
    pub attempt: Option<i32>,
    /// Only so many of the last lines.
    pub tail: Option<u64>,
    /// Only lines since this time.
    pub since: Option<DateTime<Utc>>,
    /// Continue to the end of the log, which may be days away.
    pub follow: bool,
    /// Start each line with the time at which the node received it.
    pub timestamps: bool,
    /// Only what the application itself wrote ([`sparkgate_submission::OwnOutput`]). `tail` counts all lines.
    pub own_output: bool,
}

/// The source of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSource {
    Pod,
    /// The store of logs.
    Store,
    /// What the operator's collector wrote.
    Collector,
    /// The part that was archived in the database.
    Kept,
}

impl LogSource {
    /// Returns its name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Store => "store",
            Self::Collector => "collector",
            Self::Kept => "kept",
        }
    }
}

/// A log that is being read.
pub struct LogStream {
    pub source: LogSource,
    /// Lines are missing: only the last part was archived, or the end wasn't stored.
    pub cut: bool,
    /// Arbitrary bytes. The stream ends with an error if the rest can't be read, so that the reader knows that the log is
    /// incomplete.
    pub bytes: BoxStream<'static, Result<Bytes, Error>>,
}

/// Why there is no log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoLog {
    Submission,
    Attempt,
    Executor,
    /// The container hasn't started, with the reason.
    NotStarted(String),
    /// The container never started, and the submission has ended.
    NeverStarted,
    /// The pod is gone, and nothing was archived.
    Gone,
    /// The log of an executor was deleted with its pod.
    ExecutorGone,
    /// Too many logs are being read.
    Busy,
    /// The tenant's cap on readers is reached.
    Limited(Exceeded),
}

/// The answer to a [`LogRequest`].
pub enum Log {
    Stream(LogStream),
    None(NoLog),
}
