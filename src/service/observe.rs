//! What the watch sees becomes state.

use std::collections::HashSet;

use super::{Error, Gateway, error::chain};
use crate::{
    cluster::{Found, PodKey, Seen},
    store::{Live, Record},
    submission::{Container, Observation, Phase, Placement, Progress, Step, step},
};

impl Gateway {
    /// Takes one thing the watch saw; taking it twice does no harm.
    ///
    /// # Errors
    /// What may pass: the caller takes the same thing again, because a pod that has ended is not shown a second time.
    /// Everything else is logged here and left.
    pub async fn seen(&self, namespace: Option<&str>, seen: &Seen) -> Result<(), Error> {
        let taken = match seen {
            Seen::Driver(pod) => self.observe(pod).await,
            Seen::Executor(_) => Ok(()),
            Seen::Listed { drivers, .. } => {
                self.compare(namespace, drivers).await?;
                self.watch.listed(namespace.map(str::to_owned));
                Ok(())
            }
            Seen::Broken { reason } => {
                tracing::warn!(%reason, "the watch of driver pods is interrupted");
                self.watch.broken(namespace.map(str::to_owned), reason.clone());
                Ok(())
            }
        };
        taken.or_else(|error| leave_unless_it_may_pass(error, "taking in what the watch saw"))
    }

    /// One look at a pod: the next state by the rule of `submission`, written guarded.
    pub(super) async fn observe(&self, seen: &Observation) -> Result<(), Error> {
        let Some(record) = self.store.find(&seen.submission).await? else {
            tracing::debug!(submission = %seen.submission, "a driver pod of a submission that isn't ours");
            return Ok(());
        };
        if !stands_for(&record, seen) {
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
            tracing::info!(submission = %record.id, "{} → {progress}", record.state);
        }
        Ok(())
    }

    /// A live driver that no submission stands for must not run: a writer that was paused may have created it late.
    /// What was seen may be old, so both sides are read afresh before the pod is deleted.
    async fn reap(&self, seen: &Observation) -> Result<(), Error> {
        if !seen.is_alive() {
            return Ok(());
        }
        let Some(pod) = self.store.pod_of(&seen.submission).await? else { return Ok(()) };
        let found = self.cluster.find_driver(&pod.namespace, &pod.pod, &seen.submission, seen.attempt).await?;
        let Found::Ours(now) = found else { return Ok(()) };
        let Some(record) = self.store.find(&seen.submission).await? else { return Ok(()) };
        if now.pod_uid != seen.pod_uid || !now.is_alive() || stands_for(&record, &now) {
            return Ok(());
        }
        tracing::warn!(submission = %seen.submission, pod = %pod.pod, "deleting a driver that no submission stands for");
        Ok(self.cluster.delete_pod(&pod.namespace, &pod.pod, &now.pod_uid).await?)
    }

    /// After a full list: submissions whose pod was not in it are looked up once more, because a pod may be younger
    /// than the list. One that can't be looked up doesn't keep the others from it.
    async fn compare(&self, namespace: Option<&str>, listed: &HashSet<PodKey>) -> Result<(), Error> {
        let mut failed = Ok(());
        for live in self.store.live().await? {
            let elsewhere = namespace.is_some_and(|name| name != live.namespace);
            let uid = live.pod_uid.clone().unwrap_or_default();
            if elsewhere || listed.contains(&(live.id.clone(), live.attempt, uid)) {
                continue;
            }
            if let Err(error) = self.look_for(&live).await {
                failed = leave_unless_it_may_pass(error, "looking for a driver pod").and(failed);
            }
        }
        failed
    }

    async fn look_for(&self, live: &Live) -> Result<(), Error> {
        let found = self.cluster.find_driver(&live.namespace, &live.pod, &live.id, live.attempt).await?;
        match found {
            Found::Ours(seen) if live.pod_uid.as_ref().is_none_or(|uid| *uid == seen.pod_uid) => {
                self.observe(&seen).await
            }
            Found::Ours(_) | Found::Foreign | Found::Nothing => self.observe(&gone(live)).await,
        }
    }
}

/// Whether the pod is the one of the submission, and the submission still wants it.
fn stands_for(record: &Record, seen: &Observation) -> bool {
    let same = record.attempt == seen.attempt && record.pod_uid.as_ref().is_none_or(|uid| *uid == seen.pod_uid);
    same && !record.state.is_terminal()
}

fn leave_unless_it_may_pass(error: Error, action: &str) -> Result<(), Error> {
    if error.may_pass() {
        return Err(error);
    }
    tracing::error!("{action}: {}", chain(&error));
    Ok(())
}

/// The observation of a pod that isn't there.
fn gone(live: &Live) -> Observation {
    Observation {
        submission: live.id.clone(),
        attempt: live.attempt,
        namespace: live.namespace.clone(),
        pod: live.pod.clone(),
        forced: false,
        holds_finalizer: false,
        pod_uid: live.pod_uid.clone().unwrap_or_default(),
        phase: Phase::Unknown,
        deleting: false,
        gone: true,
        node: None,
        pod_ip: None,
        reason: None,
        message: None,
        container: Container::Absent,
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
