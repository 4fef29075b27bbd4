//! Logs in an object store.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use sparkgate_common::{
    error::{Error, error_chain},
    store_owner::StoreOwner,
};
use sparkgate_files::{FileStore, LogEnding, LogFolder, LogIndex, tenant_folder};
use sparkgate_metrics::metrics;
use sparkgate_store::{LogTarget, Store};
use sparkgate_submission::SubmissionId;

/// Where the day of a submission is in its id.
const DAY: std::ops::Range<usize> = 7..15;

/// How logs are kept in an object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogStoreSettings {
    /// The largest log of one container, in bytes before compression.
    pub largest: u64,
}

/// The store of logs.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) objects: FileStore,
    pub(super) settings: LogStoreSettings,
    pub(super) owner: StoreOwner,
    /// The last write failed.
    is_away: AtomicBool,
}

/// A log in the store.
pub(super) struct StoredLog {
    folder: LogFolder,
    index: LogIndex,
}

impl Stored {
    pub(super) fn new(store: Store, objects: FileStore, settings: LogStoreSettings) -> Self {
        Self { objects, settings, owner: StoreOwner::new(store), is_away: AtomicBool::new(false) }
    }

    /// Returns the folder of a container's log.
    pub(super) fn folder(&self, id: &SubmissionId, target: &LogTarget, executor: Option<i64>) -> LogFolder {
        let container = executor.map_or_else(|| "driver".to_owned(), |executor| format!("executor-{executor}"));
        self.objects.log(format!("{}/{}/{container}", folder_of(&target.tenant, id), target.attempt))
    }

    /// Looks for a log. `None` if nothing of it is stored.
    pub(super) async fn find(
        &self,
        id: &SubmissionId,
        target: &LogTarget,
        executor: Option<i64>,
    ) -> Result<Option<StoredLog>, Error> {
        let folder = self.folder(id, target, executor);
        let index = folder.index().await?;
        Ok(Some(StoredLog { folder, index }).filter(|log| !log.index.is_empty()))
    }

    /// Records that a write failed.
    pub(super) fn failed(&self, error: &(dyn std::error::Error + Send + Sync + 'static)) {
        metrics().log_store_errors.inc();
        if !self.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!("logs can't be stored, and wait on their nodes: {}", error_chain(error));
        }
    }

    /// Records that a write succeeded.
    pub(super) fn wrote(&self) {
        if self.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("logs are stored again");
        }
    }

    pub(super) fn is_away(&self) -> bool {
        self.is_away.load(Ordering::Relaxed)
    }
}

/// Returns the folder of a submission. Those of a day are listed together.
pub(super) fn folder_of(tenant: &str, id: &SubmissionId) -> String {
    format!("{}/{}/{id}", tenant_folder(tenant), id.as_str().get(DAY).unwrap_or("other"))
}

impl StoredLog {
    /// Returns whether it has all that the container wrote.
    pub(super) fn is_whole(&self) -> bool {
        self.index.ending == Some(LogEnding::Whole) && !self.index.has_gap
    }

    /// Returns whether lines are missing between others.
    pub(super) fn has_gap(&self) -> bool {
        self.index.has_gap
    }

    /// Returns the text, with the times of its lines: the last `tail` lines, or from a time on. Some earlier lines may be included.
    pub(super) fn text(
        self,
        tail: Option<u64>,
        since: Option<DateTime<Utc>>,
    ) -> BoxStream<'static, Result<Bytes, Error>> {
        let (first, skipped) = match (tail, since) {
            (Some(count), _) => self.index.tail(count),
            (None, Some(since)) => (self.index.since(since), 0),
            (None, None) => (0, 0),
        };
        self.folder.read(self.index, first, skipped).map_err(Error::from).boxed()
    }
}
