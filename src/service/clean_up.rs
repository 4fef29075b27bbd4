//! Clean-up: what ended long enough ago goes, first from the cluster and then from the database.

use std::time::Duration;

use futures::future::join_all;

use super::{Error, Gateway, error::chain};
use crate::{
    cluster::{self, Manifest},
    store::EndedPod,
};

/// What is worked on in one round, and how many pods are deleted at once.
const ROUND: u32 = 100;
const AT_ONCE: usize = 10;
/// A pod that can't be deleted is tried again after this.
const PUT_OFF: Duration = Duration::from_secs(600);

/// How long what has ended is kept; `None` is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CleanUpSettings {
    /// The driver pod, with its log and all that it owns.
    pub finished_pod_ttl: Option<Duration>,
    /// The row, its events and its executors; its pod goes before it.
    pub retention: Option<Duration>,
}

/// What one round did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CleanedUp {
    /// Driver pods that are deleted, or were gone.
    pub pods: usize,
    /// Driver pods that could not be deleted: they are tried again later.
    pub put_off: usize,
    pub submissions: u64,
    /// There may be more to do at once.
    pub more: bool,
}

impl Gateway {
    /// Does one bounded round. Several at once, in several processes, do no harm. Nothing is old enough while the clock of
    /// the database is doubted.
    ///
    /// # Errors
    /// The database, or a cluster that answers nothing.
    pub async fn clean_up(&self, settings: &CleanUpSettings) -> Result<CleanedUp, Error> {
        let mut done = CleanedUp::default();
        let Some(until) = self.believed_until("clean-up").await? else { return Ok(done) };
        let ages = [settings.finished_pod_ttl, settings.retention];
        if let Some(age) = ages.into_iter().flatten().min() {
            let pods = self.store.ended_pods(age, ROUND, Some(until)).await?;
            done.more = pods.len() >= ROUND as usize;
            for some in pods.chunks(AT_ONCE) {
                self.delete_ended_pods(some, &mut done).await?;
            }
        }
        if let Some(age) = settings.retention {
            done.submissions = self.store.delete_ended(age, ROUND, Some(until)).await?;
            done.more |= done.submissions >= u64::from(ROUND);
        }
        Ok(done)
    }

    async fn delete_ended_pods(&self, pods: &[EndedPod], done: &mut CleanedUp) -> Result<(), Error> {
        let answers = join_all(pods.iter().map(|pod| self.delete_ended_pod(pod))).await;
        let (mut deleted, mut put_off) = (Vec::new(), Vec::new());
        let mut unanswered = Vec::new();
        for (pod, answer) in pods.iter().zip(answers) {
            let Err(error) = answer else {
                deleted.push((pod.submission.as_str(), pod.attempt));
                continue;
            };
            tracing::warn!(submission = %pod.submission, retry_in = ?PUT_OFF, "{}", chain(&error));
            put_off.push(pod.submission.as_str());
            unanswered.extend(Some(error).filter(|error| matches!(error, cluster::Error::Unavailable { .. })));
        }
        if !deleted.is_empty() {
            self.store.note_pods_deleted(&deleted).await?;
        }
        if !put_off.is_empty() {
            self.store.put_clean_up_off(&put_off, PUT_OFF).await?;
        }
        done.pods += deleted.len();
        done.put_off += put_off.len();
        // One may be the fault of its namespace; all are the cluster's.
        if unanswered.len() == pods.len() { unanswered.pop().map_or(Ok(()), |error| Err(error.into())) } else { Ok(()) }
    }

    async fn delete_ended_pod(&self, ended: &EndedPod) -> Result<(), cluster::Error> {
        let EndedPod { submission, namespace, pod, uid, manifest, .. } = ended;
        if pod.is_empty() {
            let action = format!("deleting the driver pod of uid {uid} in {namespace}");
            return Err(cluster::Error::NotFound { action, message: "its row doesn't name it".to_owned() });
        }
        // The driver may have ended in the moment before these became its own.
        let manifest = manifest.as_deref().and_then(|text| serde_json::from_str::<Manifest>(text).ok());
        for object in manifest.iter().flat_map(|manifest| &manifest.before) {
            if let Ok(id) = submission.parse() {
                self.cluster.delete_before_pod(namespace, object, &id).await?;
            }
        }
        if self.cluster.delete_pod(namespace, pod, uid, None).await? {
            // A pod that lost its labels is not shown to the watch, which would let it go.
            self.cluster.let_go(namespace, pod, uid).await?;
        }
        Ok(())
    }
}
