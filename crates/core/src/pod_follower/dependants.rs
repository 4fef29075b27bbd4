//! The end of an attempt is the end of its pods. A driver that stops deletes its executors; one that crashes, or that doesn't want to,
//! leaves pods behind, under whatever labels.
//!
//! While drivers of a namespace end, the metadata of its live pods is listed now and then, which finds the pods by their owner. That
//! costs one call for all drivers that ended since the last one, and none if no driver ended.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use futures::{StreamExt, stream};
use tokio::time::{Instant, sleep};

use super::PodFollower;
use sparkgate_cluster::{Dependant, Drivers};
use sparkgate_common::error::{Error, error_chain};
use sparkgate_store::RecordedDriver;

/// The shortest pause between two rounds. A round lasts at most a twentieth of the pause after it.
const PAUSE: Duration = Duration::from_secs(10);
const SHARE: u32 = 20;
/// How long after its end a driver's pods are left alone: executors without a driver end by themselves.
const PATIENCE: Duration = Duration::from_secs(10);
/// Drivers of one statement.
const PAGE: usize = 500;
const AT_ONCE: usize = 8;
/// Namespaces that are listed concurrently.
const NAMESPACES: usize = 64;

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
        let mut by_namespace = BTreeMap::<String, Drivers>::new();
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
                        let drivers = by_namespace.entry(ended.namespace.clone()).or_default();
                        drivers.uids.insert(uid.clone());
                        drivers.applications.extend(Some(application.clone()).filter(|id| !id.is_empty()));
                    }
                }
            }
        }
        // A namespace that doesn't answer delays no other.
        let each = by_namespace.into_iter().map(async |(place, drivers): (String, Drivers)| {
            let ended = self.end_dependants_of(&place, &drivers).await;
            if let Ok(0) = ended {
                self.ended_drivers.done(namespace, &drivers.uids);
            }
            ended
        });
        let all: Vec<_> = stream::iter(each).buffer_unordered(NAMESPACES).collect().await;
        all.into_iter().sum()
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
