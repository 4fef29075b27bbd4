//! The drivers that have ended and may have left pods behind, as the watches of this process show them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use sparkgate_submission::{PodObservation, SubmissionId};

/// Drivers that have ended and may have left pods behind, by the watched scope and their uid.
#[derive(Debug, Default)]
pub(super) struct EndedDrivers {
    scopes: Mutex<HashMap<Option<String>, Scope>>,
}

#[derive(Debug, Default)]
struct Scope {
    waiting: HashMap<String, Ended>,
    /// Uids of pods that still exist, and have left nothing.
    done: HashSet<String>,
}

#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) submission: SubmissionId,
    pub(super) attempt: i32,
    pub(super) namespace: String,
    since: Instant,
}

/// Guard that lasts as long as the watch of a scope.
#[derive(Debug)]
pub(super) struct Begun<'a> {
    drivers: &'a EndedDrivers,
    namespace: Option<String>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.drivers.scopes().remove(&self.namespace);
    }
}

impl EndedDrivers {
    /// Starts a watch of this scope: its list shows the drivers that have ended.
    #[must_use = "the scope is forgotten when this is dropped"]
    pub(super) fn begin(&self, namespace: Option<&str>) -> Begun<'_> {
        let begun = Begun { drivers: self, namespace: namespace.map(str::to_owned) };
        self.scopes().insert(begun.namespace.clone(), Scope::default());
        begun
    }

    /// Takes in one observation of a driver pod.
    pub(super) fn record_observation(&self, namespace: Option<&str>, observed: &PodObservation) {
        let mut scopes = self.scopes();
        let scope = scopes.entry(namespace.map(str::to_owned)).or_default();
        let is_done =
            if observed.gone { scope.done.remove(&observed.pod_uid) } else { scope.done.contains(&observed.pod_uid) };
        if is_done || !(observed.is_over() || observed.gone) || scope.waiting.contains_key(&observed.pod_uid) {
            return;
        }
        let (submission, attempt, namespace) =
            (observed.submission.clone(), observed.attempt, observed.namespace.clone());
        let ended = Ended { submission, attempt, namespace, since: Instant::now() };
        scope.waiting.insert(observed.pod_uid.clone(), ended);
    }

    /// Returns the drivers that ended at least `patience` ago, with their uids.
    pub(super) fn waiting(&self, namespace: Option<&str>, patience: Duration) -> Vec<(String, Ended)> {
        let scopes = self.scopes();
        let all = scopes.get(&namespace.map(str::to_owned)).into_iter().flat_map(|scope| &scope.waiting);
        let due = all.filter(|(_, ended)| ended.since.elapsed() >= patience);
        due.map(|(uid, ended)| (uid.clone(), ended.clone())).collect()
    }

    /// Records that these drivers have left nothing.
    pub(super) fn done<'a>(&self, namespace: Option<&str>, uids: impl IntoIterator<Item = &'a String>) {
        let mut scopes = self.scopes();
        let Some(scope) = scopes.get_mut(&namespace.map(str::to_owned)) else { return };
        for uid in uids {
            if scope.waiting.remove(uid).is_some() {
                scope.done.insert(uid.clone());
            }
        }
    }

    /// No code that holds the lock can leave a scope in an inconsistent state, so a poisoned lock is safe to use.
    fn scopes(&self) -> MutexGuard<'_, HashMap<Option<String>, Scope>> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
