//! Deletes the pods of drivers that ended long enough ago, those of each namespace on its own.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::future::join_all;
use tokio::task::{Id, JoinSet};

use super::{Leadership, batch::ROUND};
use sparkgate_cluster::{self, Manifest};
use sparkgate_common::error::{Error, error_chain};
use sparkgate_store::EndedPod;

/// How many pods of a namespace are deleted concurrently.
const AT_ONCE: usize = 10;
/// Delay of the retry for a pod that can't be deleted.
const PUT_OFF: Duration = Duration::from_secs(600);

/// What became of the pods of one namespace.
#[derive(Debug, Default)]
pub(super) struct Ended {
    pub(super) deleted: usize,
    pub(super) put_off: usize,
    pub(super) unanswered: Option<sparkgate_cluster::Error>,
}

/// The namespaces whose pods are being deleted, each in a task of its own: one that waits for a statement goes on, whatever waits for
/// its end. The tasks end with this.
pub(super) struct PodsUnderWay {
    leadership: Arc<Leadership>,
    /// How long a pod is kept after the end of its driver; `None` means forever.
    age: Option<Duration>,
    tasks: JoinSet<Result<Ended, Error>>,
    namespaces: HashMap<Id, String>,
}

impl PodsUnderWay {
    pub(super) fn new(leadership: &Arc<Leadership>, age: Option<Duration>) -> Self {
        Self { leadership: leadership.clone(), age, tasks: JoinSet::new(), namespaces: HashMap::new() }
    }

    /// Begins with the pods that are due in other namespaces than those under way. Returns how many there are.
    pub(super) async fn begin_due(&mut self) -> Result<usize, Error> {
        let mut begun = 0;
        for (namespace, pods) in self.leadership.due_pods(self.age, self.namespaces.values()).await? {
            begun += pods.len();
            let (leadership, of) = (self.leadership.clone(), namespace.clone());
            let task = self.tasks.spawn(async move { leadership.delete_pods_of_namespace(&of, pods).await });
            self.namespaces.insert(task.id(), namespace);
        }
        Ok(begun)
    }

    /// Waits for the next namespace that has ended; `None` if none is under way. Dropping the future loses nothing.
    pub(super) async fn next_ended(&mut self) -> Option<Result<Ended, Error>> {
        let (task, ended) = match self.tasks.join_next_with_id().await? {
            Ok(ended) => ended,
            Err(error) => {
                let action = "deleting the ended pods of a namespace failed".to_owned();
                (error.id(), Err(Error::Internal(action, error.into())))
            }
        };
        self.namespaces.remove(&task);
        Some(ended)
    }
}

impl Leadership {
    /// Returns the pods that are due by namespace, but for those in `except`, and those that gave no answer a moment ago. A namespace
    /// whose pause is over has one try.
    async fn due_pods(
        &self,
        age: Option<Duration>,
        except: impl Iterator<Item = &String>,
    ) -> Result<BTreeMap<String, Vec<EndedPod>>, Error> {
        let mut due = BTreeMap::<_, Vec<_>>::new();
        let Some(age) = age else { return Ok(due) };
        let Some(until) = self.clock.believed_until("clean-up").await? else { return Ok(due) };
        let except: Vec<_> = except.cloned().chain(self.silent.paused()).collect();
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
                if matches!(error, sparkgate_cluster::Error::Unavailable { .. }) {
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
            self.silent.record_answer(namespace, ended.unanswered.is_none());
            noted?;
            postponed?;
            if ended.unanswered.is_some() {
                break;
            }
        }
        Ok(ended)
    }

    async fn delete_ended_pod(&self, ended: &EndedPod) -> Result<(), sparkgate_cluster::Error> {
        let EndedPod { submission, namespace, pod, uid, manifest, .. } = ended;
        if pod.is_empty() {
            let action = format!("deleting the driver pod of uid {uid} in {namespace}");
            let message = "its row doesn't name it".to_owned();
            return Err(sparkgate_cluster::Error::NotFound { action, name: String::new(), message });
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
