//! Writes the observations of executors in batches.

use std::collections::HashSet;

use futures::{StreamExt, stream};

use super::{
    PodFollower,
    executors::{BATCH, scope::change_of},
};
use sparkgate_cluster as cluster;
use sparkgate_common::error::{Error, error_chain};
use sparkgate_submission::ExecutorRecord;

/// Maximum number of missing pods that one flush looks up, and how many concurrently.
const LOOKS: usize = 100;
const AT_ONCE: usize = 16;

impl PodFollower {
    /// Writes the observations of a scope's executors that were taken in before this call, and returns how many rows were new
    /// or changed. If the call is interrupted, observations that aren't written yet remain.
    ///
    /// # Errors
    /// Transient errors: the next call does the rest. An executor that can't be written at all is logged and skipped.
    pub async fn flush_executors(&self, namespace: Option<&str>) -> Result<u64, Error> {
        let mut written = self.write_changes(namespace).await?;
        if let Some(list) = self.executors.within(namespace, |scope| scope.to_be_compared()) {
            let live = self.store.live_executors(namespace).await?;
            self.executors.within(namespace, |scope| scope.compare(list, live));
        }
        if self.look_for_missing(namespace).await? {
            written += self.write_changes(namespace).await?;
        }
        Ok(written)
    }

    async fn write_changes(&self, namespace: Option<&str>) -> Result<u64, Error> {
        let mut written = 0;
        let mut last = None;
        loop {
            let mut batch = self.executors.within(namespace, |scope| scope.batch(last.as_ref(), BATCH));
            let Some(end) = batch.last() else { return Ok(written) };
            last = Some(change_of(end));
            if self.set_aside.is_wary() {
                self.leave_locked(&mut batch).await?;
            }
            match self.write_batch(&batch).await {
                Err(error) if error.is_contention() => {
                    // Rows that other transactions hold are left to a later call.
                    self.set_aside.be_wary();
                    self.leave_locked(&mut batch).await?;
                    written += self.write_batch(&batch).await?;
                }
                answer => written += answer?,
            }
            self.executors.within(namespace, |scope| scope.written(&batch));
        }
    }

    /// Removes records from a batch whose submissions' rows are locked by other transactions.
    async fn leave_locked(&self, batch: &mut Vec<ExecutorRecord>) -> Result<(), Error> {
        let ids: HashSet<_> = batch.iter().map(|executor| &executor.submission).collect();
        let locked = self.store.locked(&ids.into_iter().collect::<Vec<_>>()).await?;
        batch.retain(|executor| !locked.contains(&executor.submission));
        Ok(())
    }

    /// Writes the whole batch, or all but the records that can't be written.
    async fn write_batch(&self, batch: &[ExecutorRecord]) -> Result<u64, Error> {
        let mut written = 0;
        let mut parts = vec![batch];
        while let Some(part) = parts.pop() {
            match self.store.write_executors(part).await.map_err(Error::from) {
                Ok(count) => written += count,
                Err(error) if error.may_pass() => return Err(error),
                Err(error) => match part {
                    [one] => {
                        let (submission, executor) = (&one.submission, one.executor_id);
                        tracing::error!(%submission, executor, "executor skipped: {}", error_chain(&error));
                    }
                    _ => parts.extend(<[_; 2]>::from(part.split_at(part.len() / 2))),
                },
            }
        }
        Ok(written)
    }

    /// Looks up some of the pods that a full list didn't contain: if another replica wrote a row, it may be newer than the
    /// list. Returns whether there were any.
    async fn look_for_missing(&self, namespace: Option<&str>) -> Result<bool, Error> {
        let missing = self.executors.within(namespace, |scope| scope.missing(LOOKS));
        let any = !missing.is_empty();
        let looks = stream::iter(missing).map(|executor| async move {
            let there = self.cluster.pod_exists(&executor.namespace, &executor.pod_name, &executor.pod_uid).await;
            (executor, there)
        });
        let mut looks = std::pin::pin!(looks.buffer_unordered(AT_ONCE));
        while let Some((executor, there)) = looks.next().await {
            let there = match there {
                Ok(there) => there,
                Err(error @ cluster::Error::Unavailable { .. }) => return Err(error.into()),
                Err(error) => {
                    tracing::warn!(submission = %executor.key.0, "executor pod left to the next list: {}", error_chain(&error));
                    true
                }
            };
            self.executors.within(namespace, |scope| scope.looked_for(&executor, there));
        }
        Ok(any)
    }
}
