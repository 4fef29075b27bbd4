//! Side-cars that never end: a driver pod whose driver has ended still runs because of them, and holds its resources.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::sleep;

use super::{Gateway, error::chain, perform::Subject};
use crate::{
    cluster,
    submission::{Container, Observation, Phase, engine::Found},
};

/// How long the other containers may take to end after the driver's.
const PATIENCE: Duration = Duration::from_secs(60);
const TRIES: u32 = 10;

/// The uids of pods that wait for their side-cars to end.
#[derive(Debug, Default)]
pub(super) struct SideCars(Mutex<HashSet<String>>);

impl SideCars {
    fn with<T>(&self, act: impl FnOnce(&mut HashSet<String>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Gateway {
    /// Notes a driver pod that still runs though its driver has ended: in a minute it is looked at afresh. After a restart a
    /// list shows it again.
    pub(super) fn note_side_cars(&self, seen: &Observation) {
        if !still_runs(seen) || !self.side_cars.with(|uids| uids.insert(seen.pod_uid.clone())) {
            return;
        }
        let (gateway, seen) = (self.clone(), Box::new(seen.clone()));
        tokio::spawn(async move {
            for _ in 0..TRIES {
                sleep(PATIENCE).await;
                match gateway.end_side_cars(&seen).await {
                    Ok(()) => break,
                    Err(error) => {
                        tracing::warn!(submission = %seen.submission, retry_in = ?PATIENCE, "{}", chain(&error));
                    }
                }
            }
            gateway.side_cars.with(|uids| uids.remove(&seen.pod_uid));
        });
    }

    /// Deletes a driver pod that still runs though its driver has ended and the outcome is recorded. The end of the log is kept
    /// first.
    ///
    /// # Errors
    /// The cluster or the database can't be asked, or the pod can't be deleted.
    pub async fn end_side_cars(&self, seen: &Observation) -> Result<(), super::Error> {
        let Observation { submission: id, attempt, namespace, pod, pod_uid, .. } = seen;
        let Some(row) = self.store.row(id).await? else { return Ok(()) };
        if !row.state.is_terminal() && row.attempt <= *attempt {
            return Ok(());
        }
        // Others may have put our labels on a pod.
        let is_recorded = row.attempt == *attempt && row.pod_uid.as_ref() == Some(pod_uid);
        let is_ours = |now: &Observation| now.pod_uid == *pod_uid && (now.genuine || is_recorded);
        let _one = self.finishing.acquire(namespace).await;
        let now = match self.cluster.find_driver(namespace, pod, id, *attempt).await? {
            Found::There(now) if is_ours(&now) && still_runs(&now) => now,
            Found::There(_) | Found::Nothing => return Ok(()),
        };
        let subject = Subject { id, attempt: *attempt, namespace, pod, claim: None };
        self.keep_what_stays(&subject, pod_uid).await;
        tracing::info!(submission = %id, pod = %format_args!("{namespace}/{pod}"), "deleting a driver pod whose side-cars don't end");
        match self.cluster.delete_pod(namespace, pod, &now.pod_uid, None).await {
            Ok(_) | Err(cluster::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a pod runs only because of containers other than the driver's.
fn still_runs(seen: &Observation) -> bool {
    let ended = matches!(seen.container, Container::Terminated { .. });
    ended && seen.phase == Phase::Running && !seen.deleting && !seen.gone
}
