//! Clean-up of files: Spark never deletes what it uploaded.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use futures::{StreamExt, TryStreamExt};

use super::{Files, Kept};
use sparkgate_common::error::Error;
use sparkgate_metrics::metrics;

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
    /// Uploads that no client has continued for a day.
    pub uploads: usize,
    /// Objects without a file or an upload, and parts that were cut off.
    pub orphans: usize,
    /// More may be due right now.
    pub more: bool,
}

impl Files {
    /// Ends the uses of submissions that have ended, and deletes uploads that were given up and files that weren't used for long.
    /// `believed_until` is the time until which the clock of the database is believed.
    ///
    /// # Errors
    /// The database fails. An object that can't be deleted is left to [`Files::sweep`].
    pub async fn clean_up(&self, believed_until: Option<DateTime<Utc>>) -> Result<SweptFiles, Error> {
        let Some(kept) = &self.kept else { return Ok(SweptFiles::default()) };
        if !kept.owner.is_ours(&kept.objects).await? {
            return Ok(SweptFiles::default());
        }
        let mut swept =
            SweptFiles { more: self.store.release_files(ROUND).await? >= u64::from(ROUND), ..SweptFiles::default() };
        let given_up = self.store.delete_given_up_uploads(ROUND, believed_until).await?;
        swept.uploads = given_up.len();
        for parts in &given_up {
            kept.delete_all(parts).await;
        }
        metrics().files_deleted.with(["upload"]).inc_by(given_up.len() as u64);
        let Some(age) = kept.settings.unused_ttl else { return Ok(swept) };
        let deleted = self.store.delete_unused_files(age, ROUND, believed_until).await?;
        swept.files = deleted.len();
        swept.more |= deleted.len() >= ROUND as usize;
        kept.delete_all(&deleted).await;
        metrics().files_deleted.with(["unused"]).inc_by(deleted.len() as u64);
        Ok(swept)
    }

    /// Deletes objects that no file and no upload has: those of processes that were killed. Only those written a day before `now`.
    ///
    /// # Errors
    /// The database or the store fails.
    pub async fn sweep(&self, now: DateTime<Utc>) -> Result<SweptFiles, Error> {
        let Some(Kept { objects, owner, .. }) = &self.kept else { return Ok(SweptFiles::default()) };
        if !owner.is_ours(objects).await? {
            return Ok(SweptFiles::default());
        }
        let before = now - ORPHANED;
        let mut orphans = objects.delete_parts_older_than(before).await?;
        let mut old = objects.older_than(before).try_chunks(AT_ONCE);
        while let Some(some) = old.next().await {
            // What was read before the error is compared in the next sweep.
            let some = some.map_err(|error| error.1)?;
            let originals: Vec<String> = some.iter().map(|each| each.original.clone()).collect();
            let orphaned: BTreeSet<String> = self.store.orphaned_objects(&originals).await?.into_iter().collect();
            for orphan in some.iter().filter(|each| orphaned.contains(&each.original)) {
                objects.delete(&orphan.key).await?;
                orphans += 1;
            }
        }
        metrics().files_deleted.with(["orphan"]).inc_by(orphans as u64);
        Ok(SweptFiles { orphans, ..SweptFiles::default() })
    }
}
