//! Executors: what a watch shows of them is gathered here, and written in batches.

mod scope;

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::time::Instant;

use self::scope::Scope;
use super::{Error, Gateway, error::chain};
use crate::{
    store::LiveExecutor,
    submission::{ExecutorKey, ExecutorObservation, ExecutorRecord, SubmissionId},
};

/// Rows of one statement.
const BATCH: usize = 500;

/// What the watches of this process have shown of executors, and what of it is yet to be written. Each watched scope (a
/// namespace, or `None` for all) is taken in by itself, one thing after the other.
#[derive(Debug, Default)]
pub struct Executors {
    scopes: Mutex<HashMap<Option<String>, Scope>>,
}

impl Executors {
    /// Takes in one look at the pod of an executor; twice does no harm.
    pub fn note(&self, namespace: Option<&str>, seen: &ExecutorObservation) {
        self.scopes().entry(namespace.map(str::to_owned)).or_default().note(seen);
    }

    /// Takes in a full list: the pods of these executors exist. Of all others the next [`Gateway::flush_executors`]
    /// finds out that they are gone.
    pub fn listed(&self, namespace: Option<&str>, listed: &HashSet<ExecutorKey>) {
        self.scopes().entry(namespace.map(str::to_owned)).or_default().listed(listed.clone());
    }

    /// Forgets a scope that this process watches no longer; who watches it next begins with a full list.
    pub fn forget(&self, namespace: Option<&str>) {
        self.scopes().remove(&namespace.map(str::to_owned));
    }

    /// Whether there is a whole batch to be written.
    pub fn batch_is_full(&self) -> bool {
        self.scopes().values().any(|scope| scope.changes() >= BATCH)
    }

    fn names(&self) -> Vec<Option<String>> {
        self.scopes().keys().cloned().collect()
    }

    /// Runs `act` on a scope, if it is still watched.
    fn within<T: Default>(&self, namespace: &Option<String>, act: impl FnOnce(&mut Scope) -> T) -> T {
        self.scopes().get_mut(namespace).map(act).unwrap_or_default()
    }

    /// Nothing that holds the lock can leave a scope half changed.
    fn scopes(&self) -> MutexGuard<'_, HashMap<Option<String>, Scope>> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gateway {
    /// Writes what was noted of executors before this call; answers how many rows were new or changed. Whatever
    /// interrupts it, what is not written stays noted.
    ///
    /// # Errors
    /// What may pass: the same is written by the next call. An executor that can't be written at all is logged and left
    /// out.
    pub async fn flush_executors(&self) -> Result<u64, Error> {
        let mut written = 0;
        for namespace in self.executors.names() {
            written += self.write_changes(&namespace).await?;
            self.compare_executors(&namespace).await?;
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

    async fn write_changes(&self, namespace: &Option<String>) -> Result<u64, Error> {
        let mut written = 0;
        let mut last = None;
        loop {
            let batch = self.executors.within(namespace, |scope| scope.batch(last.as_ref(), BATCH));
            let Some(end) = batch.last() else { return Ok(written) };
            last = Some(end.key());
            written += self.write_batch(&batch).await?;
            self.executors.within(namespace, |scope| scope.written(&batch));
        }
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

    /// After a full list: executors that have not ended by their rows and were not in it. The ones that this process
    /// has not seen come from another that watched before: one of those may be younger than the list, so the watch gets
    /// a moment to show it before it counts as gone.
    async fn compare_executors(&self, namespace: &Option<String>) -> Result<(), Error> {
        if self.executors.within(namespace, |scope| scope.is_to_be_compared()) {
            let begun = self.executors.within(namespace, |scope| scope.lists());
            let live: Vec<LiveExecutor> = self.store.live_executors(namespace.as_deref()).await?;
            self.executors.within(namespace, |scope| scope.compared(begun, live, Instant::now()));
        }
        self.executors.within(namespace, |scope| scope.give_up_missing(Instant::now()));
        Ok(())
    }
}
