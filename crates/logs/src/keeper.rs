//! Stores the logs of the pods that this replica follows, while they are written.
//!
//! One stream reads a log until its container ends. A driver deletes its executors at once, and a node deletes the log with the pod, so
//! polling would lose the last lines, which explain the most. Besides, a node returns only the newest file of a log that isn't
//! followed.

mod parts;
mod reading;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use self::{
    parts::{Parts, Source, Stage},
    reading::Reading,
};
use super::stored::Stored;
use sparkgate_cluster::Cluster;
use sparkgate_store::Store;
use sparkgate_submission::{Container, ExecutorObservation, PodObservation};

/// The streams of logs from pods to the store.
pub(super) struct Keeper {
    parts: Arc<Parts>,
    /// The pods of each watch, by uid.
    scopes: Mutex<HashMap<Option<String>, Scope>>,
}

#[derive(Default)]
struct Scope {
    pods: HashMap<String, Entry>,
    /// The number of full lists so far.
    lists: u64,
}

struct Entry {
    stage: watch::Sender<Stage>,
    /// Whether nothing more is read.
    is_done: watch::Receiver<bool>,
    /// The number of the list in which the pod was last observed.
    list: u64,
    _task: AbortOnDropHandle<()>,
}

/// Guard that lasts as long as the watch of a scope. Dropping it ends its streams: the next watch may be another replica's.
#[must_use = "the streams end when this is dropped"]
pub(super) struct Keeping<'a> {
    keeper: &'a Keeper,
    scope: Option<String>,
}

impl Drop for Keeping<'_> {
    fn drop(&mut self) {
        self.keeper.scopes().remove(&self.scope);
    }
}

impl Keeper {
    pub(super) fn new(store: Store, cluster: &Cluster, stored: Arc<Stored>) -> Self {
        let parts = Parts::new(store, cluster.for_stored_logs(), stored);
        Self { parts: Arc::new(parts), scopes: Mutex::default() }
    }

    pub(super) fn stored(&self) -> &Arc<Stored> {
        &self.parts.stored
    }

    /// Starts a watch of this scope without streams.
    pub(super) fn begin(&self, scope: Option<&str>) -> Keeping<'_> {
        let scope = scope.map(str::to_owned);
        self.scopes().insert(scope.clone(), Scope::default());
        Keeping { keeper: self, scope }
    }

    /// Takes in an observation of a driver.
    pub(super) fn note_driver(&self, scope: Option<&str>, seen: &PodObservation) {
        let Some(stage) = stage(&seen.container, seen.deleting, seen.gone) else { return };
        let source = Source {
            submission: seen.submission.clone(),
            attempt: seen.attempt,
            executor: None,
            pod: seen.pod.clone(),
            uid: seen.pod_uid.clone(),
        };
        self.note(scope, source, stage, seen.gone);
    }

    /// Takes in an observation of an executor.
    pub(super) fn note_executor(&self, scope: Option<&str>, seen: &ExecutorObservation) {
        let Some(stage) = stage(&seen.container, seen.deleting, seen.gone) else { return };
        let source = Source {
            submission: seen.submission.clone(),
            attempt: seen.attempt,
            executor: Some(seen.executor_id),
            pod: seen.pod_name.clone(),
            uid: seen.pod_uid.clone(),
        };
        self.note(scope, source, stage, seen.gone);
    }

    /// Takes in that a full list was observed. Pods that neither it nor the list before contains are forgotten, once nothing more is
    /// read of them.
    pub(super) fn note_list(&self, scope: Option<&str>) {
        let mut scopes = self.scopes();
        let Some(scope) = scopes.get_mut(&scope.map(str::to_owned)) else { return };
        let last = scope.lists;
        scope.lists += 1;
        scope.pods.retain(|_, pod| pod.list >= last || !*pod.is_done.borrow());
    }

    /// Starts the stream of a pod, or tells it what was observed. Repeating it is harmless.
    fn note(&self, scope: Option<&str>, source: Source, stage: Stage, is_gone: bool) {
        let mut scopes = self.scopes();
        let Some(scope) = scopes.get_mut(&scope.map(str::to_owned)) else { return };
        let list = scope.lists;
        if let Some(pod) = scope.pods.get_mut(&source.uid) {
            pod.list = list;
            pod.stage.send_if_modified(|now| {
                let is_later = stage > *now;
                *now = stage.max(*now);
                is_later
            });
            return;
        }
        // Nothing was read of it, and nothing is left.
        if is_gone {
            return;
        }
        let uid = source.uid.clone();
        let (sender, seen) = watch::channel(stage);
        let (done, is_done) = watch::channel(false);
        let reading = Reading { parts: self.parts.clone(), source, stage: seen };
        let task = AbortOnDropHandle::new(tokio::spawn(async move {
            reading.run().await;
            let _ = done.send(true);
        }));
        scope.pods.insert(uid, Entry { stage: sender, is_done, list, _task: task });
    }

    /// Returns a future that completes when nothing more is read of a pod; at once if this replica doesn't read it.
    pub(super) fn until_done(&self, uid: &str) -> impl Future<Output = ()> + Send + use<> {
        let is_done = self.scopes().values().find_map(|scope| scope.pods.get(uid)).map(|pod| pod.is_done.clone());
        async move {
            if let Some(mut is_done) = is_done {
                // An error means that the watch has ended.
                let _ = is_done.wait_for(|is_done| *is_done).await;
            }
        }
    }

    /// Returns how many logs are followed, and how many wait for that.
    pub(super) fn streams(&self) -> (usize, usize) {
        self.parts.streams()
    }

    /// No code that holds the lock can leave a scope in an inconsistent state, so a poisoned lock is safe to use.
    fn scopes(&self) -> MutexGuard<'_, HashMap<Option<String>, Scope>> {
        self.scopes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns what an observation says of a container; `None` before it starts.
fn stage(container: &Container, is_deleting: bool, is_gone: bool) -> Option<Stage> {
    match container {
        Container::Terminated { .. } => Some(Stage::Ended),
        _ if is_gone => Some(Stage::Gone),
        Container::Running { .. } if is_deleting => Some(Stage::Ending),
        Container::Running { .. } => Some(Stage::Running),
        Container::Absent | Container::Waiting { .. } => None,
    }
}
