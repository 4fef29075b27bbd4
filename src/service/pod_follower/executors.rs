//! Executors: gathers their observations from the watch, and writes them in batches.

#[path = "executors/scope.rs"]
mod scope;

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures::{StreamExt, stream};

use self::scope::{Scope, change_of};
use super::{Error, Gateway, error::chain};
use crate::{
    cluster,
    submission::{ExecutorKey, ExecutorObservation, ExecutorRecord, SubmissionId},
};

/// Rows of one statement.
const BATCH: usize = 500;
/// Maximum number of missing pods that one flush looks up, and how many concurrently.
const LOOKS: usize = 100;
const AT_ONCE: usize = 16;

/// The executors that the watches of this process have observed, and the records that are yet to be written. Each watched scope
/// (a namespace, or `None` for all) is processed by itself, one observation after the other.
#[derive(Debug, Default)]
pub struct Executors {
    scopes: Mutex<HashMap<Option<String>, Scope>>,
}

impl Executors {
    /// Takes in one observation of an executor's pod. Repeating it is harmless.
    pub fn note(&self, namespace: Option<&str>, seen: &ExecutorObservation) {
        self.within(namespace, |scope| scope.note(seen));
    }

    /// Takes in a full list: the pods of these executors exist. [`Gateway::flush_executors`] looks up all others.
    pub fn listed(&self, namespace: Option<&str>, listed: HashSet<ExecutorKey>) {
        self.within(namespace, |scope| scope.listed(listed));
    }

    /// Starts a watch of this scope without state. Dropping the guard discards its state: the next watch may be another
    /// replica's.
    #[must_use = "the scope is forgotten when this is dropped"]
    pub fn begin(&self, namespace: Option<&str>) -> Begun<'_> {
        let begun = Begun { executors: self, namespace: namespace.map(str::to_owned) };
        begun.forget();
        begun
    }

    /// Returns whether a full batch waits to be written.
    pub fn batch_is_full(&self, namespace: Option<&str>) -> bool {
        self.within(namespace, |scope| scope.changes() >= BATCH)
    }

    /// Returns whether nothing waits to be written.
    pub(super) fn is_written(&self, namespace: Option<&str>) -> bool {
        self.within(namespace, |scope| scope.changes() == 0)
    }

    fn within<T>(&self, namespace: Option<&str>, act: impl FnOnce(&mut Scope) -> T) -> T {
        act(self.scopes().entry(namespace.map(str::to_owned)).or_default())
    }

    /// No code that holds the lock can leave a scope in an inconsistent state, so a poisoned lock is safe to use.
    fn scopes(&self) -> MutexGuard<'_, HashMap<Option<String>, Scope>> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Guard that lasts as long as the watch of a scope.
#[derive(Debug)]
pub struct Begun<'a> {
    executors: &'a Executors,
    namespace: Option<String>,
}

impl Begun<'_> {
    fn forget(&self) {
        self.executors.scopes().remove(&self.namespace);
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}

impl Gateway {
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

    /// Returns up to `limit` executors of a submission, ordered by attempt and id, starting after `after`.
    pub async fn executors(
        &self,
        id: &SubmissionId,
        after: Option<(i32, i64)>,
        limit: u32,
    ) -> Result<Vec<ExecutorRecord>, Error> {
        Ok(self.store.executors(id, after, limit).await?)
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
                        tracing::error!(%submission, executor, "executor skipped: {}", chain(&error));
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
                    tracing::warn!(submission = %executor.key.0, "executor pod left to the next list: {}", chain(&error));
                    true
                }
            };
            self.executors.within(namespace, |scope| scope.looked_for(&executor, there));
        }
        Ok(any)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_watch_discards_the_state_of_its_scope_only() {
        let executors = Executors::default();
        let _other = executors.begin(Some("b"));
        executors.listed(Some("b"), HashSet::new());
        let begun = executors.begin(Some("a"));
        executors.listed(Some("a"), HashSet::new());
        assert_eq!(executors.scopes().len(), 2);
        drop(begun);
        assert_eq!(executors.scopes().keys().collect::<Vec<_>>(), [&Some("b".to_owned())]);
    }
}
