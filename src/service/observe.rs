//! What the watch sees becomes state.

use std::collections::HashSet;

use super::{Error, Gateway, error::chain};
use crate::{
    cluster::{Found, PodKey, Seen},
    store::{Live, Placement, Progress},
    submission::{Container, Observation, Phase, Step, step},
};

impl Gateway {
    /// Takes one thing the watch saw. Failures are logged: the next look at the pod, or the next list, repairs them.
    pub async fn seen(&self, seen: Seen) {
        let taken = match seen {
            Seen::Pod(pod) => self.observe(&pod).await,
            Seen::Listed { namespace, pods } => {
                let compared = self.compare(namespace.as_deref(), &pods).await;
                self.watch.listed(namespace);
                compared
            }
            Seen::Broken { reason } => {
                tracing::warn!(%reason, "the watch of driver pods is interrupted");
                self.watch.broken(reason);
                return;
            }
        };
        self.watch.alive();
        if let Err(error) = taken {
            tracing::error!("taking in what the watch saw: {}", chain(&error));
        }
    }

    /// One look at a pod: the next state by the rule of `submission`, written guarded.
    pub(super) async fn observe(&self, seen: &Observation) -> Result<(), Error> {
        let Some(record) = self.store.find(&seen.submission).await? else {
            tracing::debug!(submission = %seen.submission, "a driver pod of a submission that isn't ours");
            return Ok(());
        };
        if record.attempt != seen.attempt || record.pod_uid.as_ref().is_some_and(|uid| *uid != seen.pod_uid) {
            return Ok(());
        }
        let alive = matches!(seen.phase, Phase::Pending | Phase::Running) && !seen.gone && !seen.deleting;
        if record.state.is_terminal() && alive && !matches!(seen.container, Container::Terminated { .. }) {
            return self.reap(seen).await;
        }
        let progress = match step(record.state, seen) {
            Step::Stay => return Ok(()),
            Step::Waiting { reason, message } => {
                return Ok(self.store.note_waiting(&record.id, record.attempt, &reason, &message).await?);
            }
            Step::Started => Progress::Running,
            Step::Ended(outcome) => Progress::Ended(outcome),
        };
        if self.store.advance(&record.id, record.attempt, &progress, &placement(seen)).await? {
            tracing::info!(submission = %record.id, from = %record.state, progress = ?progress, "driver observed");
        }
        Ok(())
    }

    /// A live driver whose submission has ended must not run: a writer that was paused may have created it late.
    async fn reap(&self, seen: &Observation) -> Result<(), Error> {
        let Some(pod) = self.store.pod_of(&seen.submission).await? else { return Ok(()) };
        tracing::warn!(submission = %seen.submission, pod = %pod.pod, "deleting a driver whose submission has ended");
        Ok(self.cluster.delete_pod(&pod.namespace, &pod.pod, &seen.pod_uid).await?)
    }

    /// After a full list: submissions whose pod was not in it are looked up once more, because a pod may be younger
    /// than the list.
    async fn compare(&self, namespace: Option<&str>, listed: &HashSet<PodKey>) -> Result<(), Error> {
        for live in self.store.live().await? {
            let elsewhere = namespace.is_some_and(|name| name != live.namespace);
            if elsewhere || listed.contains(&(live.id.clone(), live.attempt)) {
                continue;
            }
            self.look_for(&live).await?;
        }
        Ok(())
    }

    async fn look_for(&self, live: &Live) -> Result<(), Error> {
        match self.cluster.find_driver(&live.namespace, &live.pod, &live.id, live.attempt).await? {
            Found::Ours(seen) => self.observe(&seen).await,
            Found::Foreign | Found::Nothing => {
                let Some(record) = self.store.find(&live.id).await? else { return Ok(()) };
                let gone = Observation {
                    submission: live.id.clone(),
                    attempt: live.attempt,
                    pod_uid: record.pod_uid.unwrap_or_default(),
                    phase: Phase::Unknown,
                    deleting: false,
                    gone: true,
                    node: None,
                    pod_ip: None,
                    reason: None,
                    message: None,
                    container: Container::Absent,
                };
                self.observe(&gone).await
            }
        }
    }
}

fn placement(seen: &Observation) -> Placement {
    let started_at = match &seen.container {
        Container::Running { started_at } | Container::Terminated { started_at, .. } => *started_at,
        Container::Absent | Container::Waiting { .. } => None,
    };
    Placement {
        pod_uid: Some(seen.pod_uid.clone()).filter(|uid| !uid.is_empty()),
        node: seen.node.clone(),
        pod_ip: seen.pod_ip.clone(),
        started_at,
    }
}
