//! Submissions as Livy's clients see them.

use std::sync::Arc;

use super::Submissions;
use sparkgate_common::error::Error;
use sparkgate_store::{LivyBatch, Submission};
use sparkgate_submission::SubmissionId;
use sparkgate_tenancy::session::Session;

impl Submissions {
    /// Returns a batch that the caller may see, or `None` if there is none of this number or name.
    pub async fn livy_batch(&self, caller: &Session, batch: LivyBatch<'_>) -> Result<Option<Submission>, Error> {
        Ok(self.store.scoped(&caller.readable()).livy_batch(batch).await?)
    }

    /// Returns up to `limit` batches that the caller may see, the oldest first, without the first `skipped`, and the number of all.
    pub async fn livy_batches(
        &self,
        caller: &Session,
        skipped: u32,
        limit: u32,
    ) -> Result<(Vec<Submission>, u64), Error> {
        Ok(self.store.scoped(&caller.readable()).livy_batches(skipped, limit).await?)
    }

    /// Kills a batch, unless it has ended, and forgets it for Livy's clients.
    ///
    /// # Errors
    /// As for [`Submissions::request_kill`]. If the kill is recorded and the rest fails, repeating the request completes it.
    pub async fn delete_livy_batch(self: &Arc<Self>, caller: &Session, id: &SubmissionId) -> Result<(), Error> {
        let id = id.clone();
        let delete = |this: Arc<Self>, caller: Session| async move {
            this.record_kill(&caller, &id).await?;
            Ok(this.store.scoped(&caller.killable()).delete_livy_batch(&id).await?)
        };
        self.to_its_end(caller, delete).await
    }
}
