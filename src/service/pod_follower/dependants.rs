//! The end of an attempt is the end of its pods. A driver that stops deletes its executors; one that crashes, or that doesn't want to,
//! leaves pods behind, under whatever labels.
//!
//! While drivers of a namespace end, the metadata of its live pods is listed now and then, which finds the pods by their owner. That
//! costs one call for all drivers that ended since the last one, and none if no driver ended.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream};
use tokio::time::{Instant, sleep};

use super::PodFollower;
use crate::{
    cluster::{Dependant, Drivers},
    service::error::{Error, error_chain},
    store::RecordedDriver,
    submission::{PodObservation, SubmissionId},
};

/// The shortest pause between two rounds. A round lasts at most a twentieth of the pause after it.
const PAUSE: Duration = Duration::from_secs(10);
const SHARE: u32 = 20;
/// How long after its end a driver's pods are left alone: executors without a driver end by themselves.
const PATIENCE: Duration = Duration::from_secs(10);
/// Drivers of one statement.
const PAGE: usize = 500;
const AT_ONCE: usize = 8;

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
struct Ended {
    submission: SubmissionId,
    attempt: i32,
    namespace: String,
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
    pub(super) fn note(&self, namespace: Option<&str>, seen: &PodObservation) {
        let mut scopes = self.scopes();
        let scope = scopes.entry(namespace.map(str::to_owned)).or_default();
        let is_done = if seen.gone { scope.done.remove(&seen.pod_uid) } else { scope.done.contains(&seen.pod_uid) };
        if is_done || !(seen.is_over() || seen.gone) || scope.waiting.contains_key(&seen.pod_uid) {
            return;
        }
        let (submission, attempt, namespace) = (seen.submission.clone(), seen.attempt, seen.namespace.clone());
        let ended = Ended { submission, attempt, namespace, since: Instant::now() };
        scope.waiting.insert(seen.pod_uid.clone(), ended);
    }

    fn waiting(&self, namespace: Option<&str>, patience: Duration) -> Vec<(String, Ended)> {
        let scopes = self.scopes();
        let all = scopes.get(&namespace.map(str::to_owned)).into_iter().flat_map(|scope| &scope.waiting);
        let due = all.filter(|(_, ended)| ended.since.elapsed() >= patience);
        due.map(|(uid, ended)| (uid.clone(), ended.clone())).collect()
    }

    fn done<'a>(&self, namespace: Option<&str>, uids: impl IntoIterator<Item = &'a String>) {
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

impl PodFollower {
    /// Deletes what ended drivers leave behind, as long as their namespace is watched.
    pub(super) async fn keep_ending_dependants(&self, namespace: Option<&str>) {
        loop {
            let begun = Instant::now();
            if let Err(error) = self.end_dependants(namespace, PATIENCE).await {
                tracing::warn!("looking for pods without a driver failed: {}", error_chain(&error));
            }
            sleep(PAUSE.max(begun.elapsed() * SHARE)).await;
        }
    }

    /// Deletes the live pods of drivers that have ended at least `patience` ago, and whose end is recorded. Returns how many there
    /// were. Drivers whose pods are all gone, or are being deleted, aren't looked at again.
    ///
    /// # Errors
    /// The database or the cluster doesn't answer, for one namespace at least: the next call does the rest.
    pub async fn end_dependants(&self, namespace: Option<&str>, patience: Duration) -> Result<usize, Error> {
        let waiting = self.ended_drivers.waiting(namespace, patience);
        let mut by_namespace = BTreeMap::<&str, Drivers>::new();
        for page in waiting.chunks(PAGE) {
            let pods: Vec<_> = page.iter().map(|(uid, it)| (&it.submission, it.attempt, uid.as_str())).collect();
            let recorded = self.store.recorded_drivers(&pods).await?;
            let recorded: HashMap<_, _> = recorded.into_iter().map(|one| (one.pod_uid.clone(), one)).collect();
            for (uid, ended) in page {
                match recorded.get(uid) {
                    // Another client's pod, or one that was never recorded, and so didn't start.
                    None => self.ended_drivers.done(namespace, [uid]),
                    Some(RecordedDriver { has_ended: false, .. }) => {}
                    Some(RecordedDriver { application, .. }) => {
                        let drivers = by_namespace.entry(&ended.namespace).or_default();
                        drivers.uids.insert(uid.clone());
                        drivers.applications.extend(Some(application.clone()).filter(|id| !id.is_empty()));
                    }
                }
            }
        }
        let (mut ended, mut failed) = (0, None);
        for (place, drivers) in by_namespace {
            match self.end_dependants_of(place, &drivers).await {
                Ok(0) => self.ended_drivers.done(namespace, &drivers.uids),
                Ok(count) => ended += count,
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(ended), Err)
    }

    async fn end_dependants_of(&self, namespace: &str, drivers: &Drivers) -> Result<usize, Error> {
        let dependants = self.cluster.dependants(namespace, drivers).await?;
        let delete = async |pod: &Dependant| {
            tracing::info!(pod = %format_args!("{namespace}/{}", pod.name), "deleting a pod whose driver has ended");
            self.cluster.delete_dependant(pod).await
        };
        let deleted: Vec<_> = stream::iter(&dependants).map(delete).buffer_unordered(AT_ONCE).collect().await;
        let failed = deleted.into_iter().find_map(Result::err);
        failed.map_or(Ok(dependants.len()), |error| Err(error.into()))
    }
}
