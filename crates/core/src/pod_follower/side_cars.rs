//! Sidecars that don't end: they keep a driver pod running, and its resources allocated, after the driver has ended.

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError},
    time::Duration,
};

use tokio::time::sleep;

use super::PodFollower;
use sparkgate_cluster::LogOf;
use sparkgate_common::error::{Error, error_chain};
use sparkgate_submission::{Container, Phase, PodObservation, engine::Found};

/// How long the other containers may take to end after the driver container.
const PATIENCE: Duration = Duration::from_secs(60);
const TRIES: u32 = 10;

impl PodFollower {
    fn with_side_cars<T>(&self, act: impl FnOnce(&mut HashSet<String>) -> T) -> T {
        act(&mut self.side_cars.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Schedules a check, one minute later, of a driver pod that still runs though its driver has ended. After a restart, the
    /// initial list of the watch shows the pod again.
    pub(super) fn note_side_cars(self: &Arc<Self>, observed: &PodObservation) {
        if !still_runs(observed) || !self.with_side_cars(|uids| uids.insert(observed.pod_uid.clone())) {
            return;
        }
        let (follower, observed) = (self.clone(), Box::new(observed.clone()));
        tokio::spawn(async move {
            for _ in 0..TRIES {
                sleep(PATIENCE).await;
                match follower.end_side_cars(&observed).await {
                    Ok(()) => break,
                    Err(error) => {
                        tracing::warn!(submission = %observed.submission, retry_in = ?PATIENCE, "deleting a driver pod with sidecars failed: {}", error_chain(&error));
                    }
                }
            }
            follower.with_side_cars(|uids| uids.remove(&observed.pod_uid));
        });
    }

    /// Deletes a driver pod that still runs though its driver has ended and the outcome is recorded. Archives the end of the
    /// log first.
    ///
    /// # Errors
    /// The cluster or the database can't be read, or the pod can't be deleted.
    pub async fn end_side_cars(&self, observed: &PodObservation) -> Result<(), Error> {
        let PodObservation { submission: id, attempt, namespace, pod, pod_uid, .. } = observed;
        let Some(row) = self.store.row(id).await? else { return Ok(()) };
        if !row.state.is_terminal() && row.attempt <= *attempt {
            return Ok(());
        }
        // Another client may have put our labels on a pod.
        let is_recorded = row.attempt == *attempt && row.pod_uid.as_ref() == Some(pod_uid);
        let is_ours = |now: &PodObservation| now.pod_uid == *pod_uid && (now.genuine || is_recorded);
        let _one = self.effects.permit_to_finish(namespace).await;
        let now = match self.cluster.find_driver(namespace, pod, id, *attempt).await? {
            Found::There(now) if is_ours(&now) && still_runs(&now) => now,
            Found::There(_) | Found::Nothing => return Ok(()),
        };
        self.witness.archive(id, *attempt, &LogOf { namespace, pod, uid: pod_uid }).await;
        tracing::info!(submission = %id, pod = %format_args!("{namespace}/{pod}"), "deleting the driver pod: its sidecars don't end");
        self.cluster.delete_pod(namespace, pod, &now.pod_uid, None).await?;
        Ok(())
    }
}

/// Returns whether a pod runs only because of containers other than the driver container.
fn still_runs(observed: &PodObservation) -> bool {
    let ended = matches!(observed.container, Container::Terminated { .. });
    ended && observed.phase == Phase::Running && !observed.deleting && !observed.gone
}
