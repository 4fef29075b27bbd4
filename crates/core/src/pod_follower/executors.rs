//! The observations of executors that a watch has reported, until they are written.

pub(super) mod scope;

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use self::scope::Scope;
use sparkgate_submission::{ExecutorKey, ExecutorObservation};

/// Rows of one statement.
pub(super) const BATCH: usize = 500;

/// The executors that the watches of this process have observed, and the records that are yet to be written. Each watched scope
/// (a namespace, or `None` for all) is processed by itself, one observation after the other.
#[derive(Debug, Default)]
pub struct Executors {
    scopes: Mutex<HashMap<Option<String>, Scope>>,
}

impl Executors {
    /// Takes in one observation of an executor's pod. Repeating it is harmless.
    pub fn record_observation(&self, namespace: Option<&str>, observed: &ExecutorObservation) {
        self.within(namespace, |scope| scope.note(observed));
    }

    /// Takes in a full list: the pods of these executors exist. [`PodFollower::flush_executors`](super::PodFollower::flush_executors) looks up all others.
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

    pub(super) fn within<T>(&self, namespace: Option<&str>, act: impl FnOnce(&mut Scope) -> T) -> T {
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
