//! Clean-up of files: Spark never deletes what it uploaded.

use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt, TryStreamExt};

use super::{Files, Kept};
use crate::service::error::{Error, error_chain};

/// Maximum number of uses and of files that one round ends.
const ROUND: u32 = 1000;
/// Objects that are compared with the database at once.
const AT_ONCE: usize = 500;
/// An object without a file may belong to an upload that is about to end.
const ORPHANED: TimeDelta = TimeDelta::hours(24);

/// The result of one round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweptFiles {
    /// Files that no submission used any more.
    pub files: usize,
    /// Objects without a file, and parts of uploads that were cut off.
    pub orphans: usize,
    /// More may be due right now.
    pub more: bool,
}

impl Files {
    /// Ends the uses of submissions that have ended, and deletes files that weren't used for long. `believed_until` is the time until
    /// which the clock of the database is believed.
    ///
    /// # Errors
    /// The database fails. An object that can't be deleted is left to [`Files::sweep`].
    pub async fn clean_up(&self, believed_until: Option<DateTime<Utc>>) -> Result<SweptFiles, Error> {
        let Some(Kept { objects, settings }) = self.kept.get() else { return Ok(SweptFiles::default()) };
        let mut swept =
            SweptFiles { more: self.store.release_files(ROUND).await? >= u64::from(ROUND), ..SweptFiles::default() };
        let Some(age) = settings.unused_ttl else { return Ok(swept) };
        let deleted = self.store.delete_unused_files(age, ROUND, believed_until).await?;
        swept.files = deleted.len();
        swept.more |= deleted.len() >= ROUND as usize;
        for object in &deleted {
            if let Err(error) = objects.delete(object).await {
                tracing::warn!(
                    object,
                    "an object that is not needed is left to the next sweep: {}",
                    error_chain(&error)
                );
            }
        }
        Ok(swept)
    }

    /// Deletes objects that no file has: those of uploads that ended with their process. Only those written a day before `now`.
    ///
    /// # Errors
    /// The database or the store fails.
    pub async fn sweep(&self, now: DateTime<Utc>) -> Result<SweptFiles, Error> {
        let Some(Kept { objects, .. }) = self.kept.get() else { return Ok(SweptFiles::default()) };
        let before = now - ORPHANED;
        let mut orphans = objects.delete_parts_older_than(before).await?;
        let mut old = objects.older_than(before).try_chunks(AT_ONCE);
        while let Some(keys) = old.next().await {
            // What was read before the error is compared in the next sweep.
            let keys = keys.map_err(|error| error.1)?;
            for orphan in self.store.orphaned_objects(&keys).await? {
                objects.delete(&orphan).await?;
                orphans += 1;
            }
        }
        Ok(SweptFiles { orphans, ..SweptFiles::default() })
    }
}
