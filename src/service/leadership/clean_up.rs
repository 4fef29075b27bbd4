//! Clean-up of submissions that ended long enough ago: first in the cluster, then in the database.

use std::{collections::BTreeMap, future::ready, sync::Arc, time::Duration};

use futures::future::join_all;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Leadership;
use crate::{
    cluster::{self, Manifest},
    service::error::{Error, error_chain},
    store::EndedPod,
};

/// Maximum number of pods and submissions of one round, and how many pods of a namespace are deleted concurrently.
const ROUND: u32 = 100;
/// Maximum number of submissions whose usage one statement settles.
const SETTLED_AT_ONCE: u32 = 500;
const AT_ONCE: usize = 10;
/// Pause between two rounds, unless more is due right now.
const PERIOD: Duration = Duration::from_secs(30);
/// Delay of the retry for a pod that can't be deleted.
const PUT_OFF: Duration = Duration::from_secs(600);

/// Retention times after the end of a submission; `None` means forever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanUpSettings {
    /// For the driver pod, with its log and all objects that it owns.
    pub finished_pod_ttl: Option<Duration>,
    /// For the row, its events and its executors; the pod is deleted before the row.
    pub retention: Option<Duration>,
}

/// The result of one round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleanedUp {
    /// Driver pods that were deleted, or already gone.
    pub pods: usize,
    /// Driver pods that could not be deleted; the clean-up retries them later.
    pub put_off: usize,
    pub submissions: u64,
    /// More may be due right now.
    pub more: bool,
}

/// What became of the pods of one namespace.
#[derive(Debug, Default)]
struct Ended {
    deleted: usize,
    put_off: usize,
    unanswered: Option<cluster::Error>,
}

impl Leadership {
    /// Runs one bounded round. Concurrent rounds, also of several processes, are safe. Deletes nothing while the clock of the
    /// database is doubted.
    ///
    /// # Errors
    /// The database fails, or the cluster answers no call.
    pub async fn clean_up(&self, settings: &CleanUpSettings) -> Result<CleanedUp, Error> {
        let mut done = CleanedUp::default();
        let Some(until) = self.clock.believed_until("clean-up").await? else { return Ok(done) };
        done.more = self.store.settle_usage(SETTLED_AT_ONCE, Some(until)).await? >= u64::from(SETTLED_AT_ONCE);
        let ages = [settings.finished_pod_ttl, settings.retention];
        if let Some(age) = ages.into_iter().flatten().min() {
            let pods = self.store.ended_pods(age, ROUND, Some(until)).await?;
            done.more |= pods.len() >= ROUND as usize;
            self.delete_ended_pods(&pods, &mut done).await?;
        }
        if let Some(age) = settings.retention {
            done.submissions = self.store.delete_ended(age, ROUND, Some(until)).await?;
            done.more |= done.submissions >= u64::from(ROUND);
        }
        Ok(done)
    }

    /// Runs rounds while this replica holds the lease, until `stop`.
    pub async fn run_clean_up(self: Arc<Self>, settings: CleanUpSettings, stop: CancellationToken) {
        self.leases.while_held("clean-up", &stop, || ready(Ok(true)), || self.clean_up_rounds(&settings)).await;
    }

    async fn clean_up_rounds(&self, settings: &CleanUpSettings) {
        loop {
            let more = match self.clean_up(settings).await {
                Ok(CleanedUp { pods: 0, put_off: 0, submissions: 0, more }) => more,
                Ok(CleanedUp { pods, put_off, submissions, more }) => {
                    tracing::info!(pods, put_off, submissions, "clean-up round finished");
                    more
                }
                Err(error) => {
                    tracing::warn!(retry_in = ?PERIOD, "clean-up failed: {}", error_chain(&error));
                    false
                }
            };
            if !more {
                sleep(PERIOD).await;
            }
        }
    }

    /// Deletes the pods of all namespaces concurrently, so that a namespace that doesn't answer delays no other.
    async fn delete_ended_pods(&self, pods: &[EndedPod], done: &mut CleanedUp) -> Result<(), Error> {
        let mut by_namespace: BTreeMap<&str, Vec<&EndedPod>> = BTreeMap::new();
        for pod in pods {
            by_namespace.entry(&pod.namespace).or_default().push(pod);
        }
        let namespaces = by_namespace.len();
        let each = by_namespace.into_values().map(|pods| self.delete_ended_pods_of_one_namespace(pods));
        let mut silent = Vec::new();
        for ended in join_all(each).await {
            let Ended { deleted, put_off, unanswered } = ended?;
            done.pods += deleted;
            done.put_off += put_off;
            silent.extend(unanswered.filter(|_| deleted == 0));
        }
        // A namespace may be at fault itself; if none answers, the cluster is down.
        if silent.len() == namespaces { silent.pop().map_or(Ok(()), |error| Err(error.into())) } else { Ok(()) }
    }

    /// Deletes some pods at a time. After a call without an answer, the remaining pods are put off without a call.
    async fn delete_ended_pods_of_one_namespace(&self, pods: Vec<&EndedPod>) -> Result<Ended, Error> {
        let mut ended = Ended::default();
        for some in pods.chunks(AT_ONCE) {
            let (mut deleted, mut put_off) = (Vec::new(), Vec::new());
            if ended.unanswered.is_some() {
                put_off.extend(some.iter().map(|pod| pod.submission.as_str()));
            } else {
                let answers = join_all(some.iter().map(|pod| self.delete_ended_pod(pod))).await;
                for (pod, answer) in some.iter().zip(answers) {
                    let Err(error) = answer else {
                        deleted.push((pod.submission.as_str(), pod.attempt));
                        continue;
                    };
                    tracing::warn!(submission = %pod.submission, retry_in = ?PUT_OFF, "deleting an ended driver pod failed: {}", error_chain(&error));
                    put_off.push(pod.submission.as_str());
                    if matches!(error, cluster::Error::Unavailable { .. }) {
                        ended.unanswered = Some(error);
                    }
                }
            }
            if !deleted.is_empty() {
                self.store.note_pods_deleted(&deleted).await?;
            }
            if !put_off.is_empty() {
                self.store.put_clean_up_off(&put_off, PUT_OFF).await?;
            }
            ended.deleted += deleted.len();
            ended.put_off += put_off.len();
        }
        Ok(ended)
    }

    async fn delete_ended_pod(&self, ended: &EndedPod) -> Result<(), cluster::Error> {
        let EndedPod { submission, namespace, pod, uid, manifest, .. } = ended;
        if pod.is_empty() {
            let action = format!("deleting the driver pod of uid {uid} in {namespace}");
            let message = "its row doesn't name it".to_owned();
            return Err(cluster::Error::NotFound { action, name: String::new(), message });
        }
        // The driver may have ended before the pod became the owner of these objects.
        let manifest = manifest.as_deref().and_then(|text| serde_json::from_str::<Manifest>(text).ok());
        for object in manifest.iter().flat_map(|manifest| &manifest.before) {
            if let Ok(id) = submission.parse() {
                self.cluster.delete_before_pod(namespace, object, &id).await?;
            }
        }
        if self.cluster.delete_pod(namespace, pod, uid, None).await? {
            // The watch, which would remove the finalizer, doesn't see a pod that lost its labels.
            self.cluster.remove_finalizer(namespace, pod, uid).await?;
        }
        Ok(())
    }
}
