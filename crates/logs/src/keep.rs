//! Logs that outlast their pods: in the object store of this gateway, and in that of the operator's collector.

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use tokio::time::timeout;
use uuid::Uuid;

use super::{
    DriverLogs,
    keeper::Keeper,
    stored::{LogStoreSettings, Stored},
};
use sparkgate_common::error::Error;
use sparkgate_files::{CollectedLogs, FileStore};

/// How long the finalizer of an ended driver waits for the rest of its log to be stored.
const REST: Duration = Duration::from_secs(5);
/// Logs without a submission are deleted after this time: a database that was restored may lack it for a while.
const ORPHANED: TimeDelta = TimeDelta::hours(24);
/// Submissions that are compared with the database at once.
const AT_ONCE: usize = 500;

impl DriverLogs {
    /// Stores the logs of followed pods in a store, and reads those that a collector wrote.
    pub fn with_stores(
        mut self,
        installation: Uuid,
        store: Option<(FileStore, LogStoreSettings)>,
        collected: Option<CollectedLogs>,
    ) -> Self {
        self.keeper = store.map(|(objects, settings)| {
            let objects = objects.for_logs_of_installation(installation);
            let stored = Arc::new(Stored::new(self.store.clone(), objects, settings));
            Keeper::new(self.store.clone(), &self.cluster, stored)
        });
        self.collected = collected;
        self
    }

    /// Returns whether logs are stored.
    pub fn are_stored(&self) -> bool {
        self.keeper.is_some()
    }

    pub(super) fn stored(&self) -> Option<&Arc<Stored>> {
        self.keeper.as_ref().map(Keeper::stored)
    }

    /// Waits until the log of an ended pod is stored, for a moment: a store that is away delays no driver.
    pub(super) async fn until_stored(&self, uid: &str) {
        let Some(keeper) = self.keeper.as_ref().filter(|keeper| !keeper.stored().is_away()) else { return };
        // Then the log waits on its node, as long as the pod exists.
        let _ = timeout(REST, keeper.until_done(uid)).await;
    }

    /// Returns how many logs are being stored, and how many wait for that.
    pub fn streams(&self) -> (usize, usize) {
        self.keeper.as_ref().map(Keeper::streams).unwrap_or_default()
    }

    /// Deletes the logs of submissions whose records were deleted. Returns how many submissions that were.
    ///
    /// # Errors
    /// The database or the store fails.
    pub async fn sweep(&self, now: DateTime<Utc>) -> Result<usize, Error> {
        let Some(stored) = self.stored() else { return Ok(0) };
        let (objects, before) = (&stored.objects, now - ORPHANED);
        if !stored.owner.is_ours(objects).await? {
            return Ok(0);
        }
        let mut deleted = 0;
        for tenant in objects.folders("").await? {
            for day in objects.folders(&tenant).await? {
                let ids = objects.folders(&format!("{tenant}/{day}")).await?;
                for some in ids.chunks(AT_ONCE) {
                    for id in self.store.deleted_among(some).await? {
                        let gone = objects.delete_folder(&format!("{tenant}/{day}/{id}"), before).await?;
                        deleted += usize::from(gone > 0);
                    }
                }
            }
        }
        Ok(deleted)
    }
}
