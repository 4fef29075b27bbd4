//! Executors: what a watch shows of them is gathered here, and written in batches.

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
/// Pods that one flush looks for, and how many at once.
const LOOKS: usize = 100;
const AT_ONCE: usize = 16;

/// What the watches of this process have shown of executors, and what of it is yet to be written. Each watched scope (a
/// namespace, or `None` for all) is taken in by itself, one thing after the other.
#[derive(Debug, Default)]
pub struct Executors {
    scopes: Mutex<HashMap<Option<String>, Scope>>,
}

impl Executors {
    /// Takes in one look at the pod of an executor; twice does no harm.
    pub fn note(&self, namespace: Option<&str>, seen: &ExecutorObservation) {
        self.within(namespace, |scope| scope.note(seen));
    }

    /// Takes in a full list: the pods of these executors exist. [`Gateway::flush_executors`] finds out about all others.
    pub fn listed(&self, namespace: Option<&str>, listed: HashSet<ExecutorKey>) {
        self.within(namespace, |scope| scope.listed(listed));
    }

    /// A watch of this scope begins with nothing, and leaves nothing when it ends: the next may be another replica's.
    #[must_use = "the scope is forgotten when this is dropped"]
    pub fn begin(&self, namespace: Option<&str>) -> Begun<'_> {
        let begun = Begun { executors: self, namespace: namespace.map(str::to_owned) };
        begun.forget();
        begun
    }

    /// Whether there is a whole batch to be written.
    pub fn batch_is_full(&self, namespace: Option<&str>) -> bool {
        self.within(namespace, |scope| scope.changes() >= BATCH)
    }

    /// Whether nothing waits to be written.
    pub(super) fn is_written(&self, namespace: Option<&str>) -> bool {
        self.within(namespace, |scope| scope.changes() == 0)
    }

    fn within<T>(&self, namespace: Option<&str>, act: impl FnOnce(&mut Scope) -> T) -> T {
        act(self.scopes().entry(namespace.map(str::to_owned)).or_default())
    }

    /// Nothing that holds the lock can leave a scope half changed.
    fn scopes(&self) -> MutexGuard<'_, HashMap<Option<String>, Scope>> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As long as a watch of a scope lasts.
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
    /// Writes what was noted of a scope's executors before this call; answers how many rows were new or changed.
    /// Whatever interrupts it, what is not written stays noted.
    ///
    /// # Errors
    /// What may pass: the next call does the rest. An executor that can't be written at all is logged and left out.
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

    /// Up to `limit` executors of a submission by attempt and id, those behind `after`.
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
                    // What others hold is left to a later call.
                    self.set_aside.be_wary();
                    self.leave_locked(&mut batch).await?;
                    written += self.write_batch(&batch).await?;
                }
                answer => written += answer?,
            }
            self.executors.within(namespace, |scope| scope.written(&batch));
        }
    }

    /// Takes out of a batch what belongs to submissions whose rows others hold.
    async fn leave_locked(&self, batch: &mut Vec<ExecutorRecord>) -> Result<(), Error> {
        let ids: HashSet<_> = batch.iter().map(|executor| &executor.submission).collect();
        let unlocked = self.unlocked(&ids.into_iter().collect::<Vec<_>>()).await?;
        batch.retain(|executor| unlocked.contains(&executor.submission));
        Ok(())
    }

    /// Writes the whole batch, or if one of it can't be written all the others.
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
                        tracing::error!(%submission, executor, "leaving out an executor: {}", chain(&error));
                    }
                    _ => parts.extend(<[_; 2]>::from(part.split_at(part.len() / 2))),
                },
            }
        }
        Ok(written)
    }

    /// Looks for pods that a full list didn't have, some at a time: a row may be younger than the list, if another
    /// replica wrote it. Tells whether there were any.
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
                    tracing::warn!(submission = %executor.key.0, "left to the next list: {}", chain(&error));
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
    fn a_watch_that_ends_leaves_nothing_and_no_other_scope_is_touched() {
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
