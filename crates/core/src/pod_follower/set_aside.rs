//! Pod observations that can't be stored right now: another transaction holds the row of their submission, or reading or
//! writing it fails. Each affected submission has its own retry task, so the watch continues for all others.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{task::JoinSet, time::Instant};

use sparkgate_common::error::{Error, error_chain};
use sparkgate_store::Live;
use sparkgate_submission::{PodObservation, SubmissionId};

/// Maximum number of submissions in one scope. Beyond that (for example, when a whole table is locked), the watch waits.
const MOST: usize = 256;
/// For this long after a row was found locked, the watch checks for locks before it takes in an observation.
const WARY: Duration = Duration::from_secs(10);

/// The observations that are set aside, by watched scope.
#[derive(Debug, Default)]
pub(super) struct SetAside {
    scopes: Mutex<HashMap<Option<String>, Scope>>,
    wary: Mutex<Option<Instant>>,
}

#[derive(Debug, Default)]
struct Scope {
    /// In the order of observation.
    waiting: HashMap<SubmissionId, VecDeque<Observation>>,
    tasks: JoinSet<()>,
}

/// What the watch reports about a submission.
#[derive(Debug, Clone)]
pub(super) enum Observation {
    Pod(Box<PodObservation>),
    /// A full list doesn't contain its pod.
    Missed(Box<Live>),
}

/// Guard that lasts as long as the watch of a scope.
#[derive(Debug)]
pub(super) struct Begun<'a> {
    set_aside: &'a SetAside,
    namespace: Option<String>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.set_aside.scopes().remove(&self.namespace);
    }
}

impl SetAside {
    /// Starts a watch of this scope with nothing set aside. Dropping the guard discards what is left: the next watch sees it
    /// again.
    #[must_use = "the scope is forgotten when this is dropped"]
    pub(super) fn begin(&self, namespace: Option<&str>) -> Begun<'_> {
        let begun = Begun { set_aside: self, namespace: namespace.map(str::to_owned) };
        self.scopes().insert(begun.namespace.clone(), Scope::default());
        begun
    }

    /// Returns whether nothing is set aside in this scope.
    pub(super) fn is_empty(&self, namespace: Option<&str>) -> bool {
        self.scopes().get(&namespace.map(str::to_owned)).is_none_or(|scope| scope.waiting.is_empty())
    }

    /// Returns whether this scope has room for another submission.
    pub(super) fn has_room(&self, namespace: Option<&str>) -> bool {
        self.scopes().get(&namespace.map(str::to_owned)).is_some_and(|scope| scope.waiting.len() < MOST)
    }

    /// Appends observations to those already set aside for the same submission. Returns them if there are none.
    pub(super) fn behind(
        &self,
        namespace: Option<&str>,
        id: &SubmissionId,
        observed: Vec<Observation>,
    ) -> Option<Vec<Observation>> {
        let mut scopes = self.scopes();
        let waiting = scopes.get_mut(&namespace.map(str::to_owned)).and_then(|scope| scope.waiting.get_mut(id));
        let Some(waiting) = waiting else { return Some(observed) };
        waiting.extend(observed);
        None
    }

    /// Sets aside the observations of a submission, in order, and starts `retry` in a task. Returns `false` if too many are set
    /// aside already, or if no watch of this scope runs.
    pub(super) fn add(
        &self,
        namespace: Option<&str>,
        id: &SubmissionId,
        observed: &[Observation],
        why: &Error,
        retry: impl Future<Output = ()> + Send + 'static,
    ) -> bool {
        let mut scopes = self.scopes();
        let Some(scope) = scopes.get_mut(&namespace.map(str::to_owned)) else { return false };
        if scope.waiting.len() >= MOST {
            return false;
        }
        tracing::warn!(submission = %id, "pod observations set aside for a retry: {}", error_chain(why));
        scope.waiting.entry(id.clone()).or_default().extend(observed.iter().cloned());
        while scope.tasks.try_join_next().is_some() {}
        scope.tasks.spawn(retry);
        true
    }

    /// Records that a row was found locked.
    pub(super) fn be_wary(&self) {
        *self.wary.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + WARY);
    }

    /// Returns whether a row was found locked recently.
    pub(super) fn is_wary(&self) -> bool {
        let until = *self.wary.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    /// Returns the oldest observation of a submission. If there is none, removes the submission.
    pub(super) fn first(&self, namespace: Option<&str>, id: &SubmissionId) -> Option<Observation> {
        let mut scopes = self.scopes();
        let waiting = &mut scopes.get_mut(&namespace.map(str::to_owned))?.waiting;
        let first = waiting.get(id).and_then(VecDeque::front).cloned();
        if first.is_none() {
            waiting.remove(id);
        }
        first
    }

    /// Removes the oldest observation of a submission.
    pub(super) fn taken(&self, namespace: Option<&str>, id: &SubmissionId) {
        let mut scopes = self.scopes();
        let waiting = scopes.get_mut(&namespace.map(str::to_owned)).and_then(|scope| scope.waiting.get_mut(id));
        waiting.map(VecDeque::pop_front);
    }

    /// No code that holds the lock can leave a scope in an inconsistent state, so a poisoned lock is safe to use.
    fn scopes(&self) -> MutexGuard<'_, HashMap<Option<String>, Scope>> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
