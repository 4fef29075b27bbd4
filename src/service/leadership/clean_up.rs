//! Clean-up of submissions that ended long enough ago: first in the cluster, then in the database.

use std::{
    collections::{BTreeMap, HashSet},
    future::ready,
    sync::Arc,
    time::Duration,
};

use futures::{
    StreamExt,
    future::{join, join_all},
    stream::FuturesUnordered,
};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{Leadership, batch::ROUND};
use crate::{
    cluster::{self, Manifest},
    service::error::{Error, error_chain},
    store::EndedPod,
};

/// How many pods of a namespace are deleted concurrently.
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

impl CleanedUp {
    fn log(self) {
        let Self { pods, put_off, submissions, .. } = self;
        if pods > 0 || put_off > 0 || submissions > 0 {
            tracing::info!(pods, put_off, submissions, "clean-up round finished");
        }
    }
}

/// What became of the pods of one namespace.
#[derive(Debug, Default)]
struct Ended {
    deleted: usize,
    put_off: usize,
    unanswered: Option<cluster::Error>,
}

impl Leadership {
    /// Runs one bounded round: usage, pods, and rows. None of them waits for another one to succeed. Concurrent rounds, also of several
    /// processes, are safe. Deletes nothing while the clock of the database is doubted.
    ///
    /// # Errors
    /// The database fails, or the cluster answers no call.
    pub async fn clean_up(&self, settings: &CleanUpSettings) -> Result<CleanedUp, Error> {
        let more = self.settle_ended().await;
        let pods = self.delete_ended_pods(*settings).await;
        let rows = self.delete_ended_rows(*settings).await;
        let (more, pods, (submissions, more_rows)) = (more?, pods?, rows?);
        Ok(CleanedUp { submissions, more: more || pods.more || more_rows, ..pods })
    }

    /// Runs rounds while this replica holds the lease, until `stop`.
    pub async fn run_clean_up(self: Arc<Self>, settings: CleanUpSettings, stop: CancellationToken) {
        self.leases.while_held("clean-up", &stop, || ready(Ok(true)), || self.clean_up_rounds(settings)).await;
    }

    async fn clean_up_rounds(&self, settings: CleanUpSettings) {
        join(self.row_rounds(settings), self.pod_rounds(settings)).await;
    }

    /// Settles usage and deletes rows in turns: both advance the version of what is settled, and the later of two concurrent ones changes
    /// nothing.
    async fn row_rounds(&self, settings: CleanUpSettings) {
        loop {
            let settled = self.settle_ended().await;
            let deleted = self.delete_ended_rows(settings).await;
            if let Ok((submissions, _)) = deleted {
                CleanedUp { submissions, ..CleanedUp::default() }.log();
            }
            let mut more = false;
            for round in [settled, deleted.map(|(_, more)| more)] {
                match round {
                    Ok(is_more) => more |= is_more,
                    Err(error) => failed(&error),
                }
            }
            if !more {
                sleep(PERIOD).await;
            }
        }
    }

    /// Deletes the pods of each namespace on its own: one that answers late delays no other.
    async fn pod_rounds(&self, settings: CleanUpSettings) {
        let (mut under_way, mut namespaces) = (FuturesUnordered::new(), HashSet::new());
        loop {
            match self.due_pods(settings, &namespaces).await {
                Ok(due) => {
                    for (namespace, pods) in due {
                        namespaces.insert(namespace.clone());
                        under_way.push(async move {
                            let ended = self.delete_pods_of_namespace(&namespace, pods).await;
                            (namespace, ended)
                        });
                    }
                }
                Err(error) => failed(&error),
            }
            // Another round finds what is due then.
            let (ended, ()) = match under_way.is_empty() {
                true => (None, sleep(PERIOD).await),
                false => tokio::select! {
                    ended = under_way.next() => (ended, ()),
                    () = sleep(PERIOD) => (None, ()),
                },
            };
            if let Some((namespace, ended)) = ended {
                match ended {
                    Ok(Ended { deleted: pods, put_off, .. }) => {
                        CleanedUp { pods, put_off, ..CleanedUp::default() }.log();
                    }
                    Err(error) => {
                        failed(&error);
                        sleep(PERIOD).await;
                    }
                }
                namespaces.remove(&namespace);
            }
        }
    }

    /// Settles the usage of ended submissions. Returns whether there may be more.
    async fn settle_ended(&self) -> Result<bool, Error> {
        let Some(until) = self.clock.believed_until("clean-up").await? else { return Ok(false) };
        let (_, more) = self.settled_at_once.run(|limit| self.store.settle_usage(limit, Some(until))).await?;
        Ok(more)
    }

    /// Deletes the rows of submissions that ended long ago. Returns how many, and whether there may be more.
    async fn delete_ended_rows(&self, settings: CleanUpSettings) -> Result<(u64, bool), Error> {
        let Some(age) = settings.retention else { return Ok((0, false)) };
        let Some(until) = self.clock.believed_until("clean-up").await? else { return Ok((0, false)) };
        Ok(self.deleted_at_once.run(|limit| self.store.delete_ended(age, limit, Some(until))).await?)
    }

    /// Deletes the pods that are due, of all namespaces concurrently.
    async fn delete_ended_pods(&self, settings: CleanUpSettings) -> Result<CleanedUp, Error> {
        let due = self.due_pods(settings, &HashSet::new()).await?;
        let namespaces = due.len();
        let mut done =
            CleanedUp { more: due.values().map(Vec::len).sum::<usize>() >= ROUND as usize, ..CleanedUp::default() };
        let each = due
            .into_iter()
            .map(|(namespace, pods)| async move { self.delete_pods_of_namespace(&namespace, pods).await });
        let mut silent = Vec::new();
        for ended in join_all(each).await {
            let Ended { deleted, put_off, unanswered } = ended?;
            done.pods += deleted;
            done.put_off += put_off;
            silent.extend(unanswered.filter(|_| deleted == 0));
        }
        // A namespace may be at fault itself; if none answers, the cluster is down.
        if silent.len() == namespaces
            && let Some(error) = silent.pop()
        {
            return Err(error.into());
        }
        Ok(done)
    }

    /// Returns the pods that are due by namespace, but for those in `except`, and those that gave no answer a moment ago. A namespace
    /// whose pause is over has one try.
    async fn due_pods(
        &self,
        settings: CleanUpSettings,
        except: &HashSet<String>,
    ) -> Result<BTreeMap<String, Vec<EndedPod>>, Error> {
        let mut due = BTreeMap::<_, Vec<_>>::new();
        // A pod is deleted before its row.
        let Some(age) = settings.finished_pod_ttl.into_iter().chain(settings.retention).min() else { return Ok(due) };
        let Some(until) = self.clock.believed_until("clean-up").await? else { return Ok(due) };
        let except: Vec<_> = except.iter().cloned().chain(self.silent.paused()).collect();
        for pod in self.store.ended_pods(age, ROUND, &except, Some(until)).await? {
            due.entry(pod.namespace.clone()).or_default().push(pod);
        }
        for (namespace, pods) in &mut due {
            if self.silent.is_silent(namespace) {
                pods.truncate(1);
            }
        }
        Ok(due)
    }

    /// Deletes some pods at a time. After a call without an answer, the remaining pods wait until the namespace answers one.
    async fn delete_pods_of_namespace(&self, namespace: &str, pods: Vec<EndedPod>) -> Result<Ended, Error> {
        let mut ended = Ended::default();
        for some in pods.chunks(AT_ONCE) {
            let (mut deleted, mut put_off) = (Vec::new(), Vec::new());
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
            // Each is written, whatever becomes of the other one.
            let noted = if deleted.is_empty() { Ok(()) } else { self.store.note_pods_deleted(&deleted).await };
            // The next try is another pod's.
            let postponed =
                if put_off.is_empty() { Ok(()) } else { self.store.put_clean_up_off(&put_off, PUT_OFF).await };
            ended.deleted += deleted.len();
            ended.put_off += put_off.len();
            self.silent.note(namespace, ended.unanswered.is_none());
            noted?;
            postponed?;
            if ended.unanswered.is_some() {
                break;
            }
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

fn failed(error: &Error) {
    tracing::warn!(retry_in = ?PERIOD, "clean-up failed: {}", error_chain(error));
}
