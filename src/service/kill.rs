//! Kill requests, and carrying them out.

use std::time::Duration;

use super::{Error, Gateway, work::Backoff};
use crate::{
    cluster::Found,
    store::Claimed,
    submission::{Outcome, Placement, Progress, SubmissionId},
};

/// How often a driver that was told to go is looked at, should the watch miss its end.
const RECHECK: Duration = Duration::from_secs(10);

impl Gateway {
    /// Asks for the end of a submission. `false` if there is none of that id or it has ended already.
    pub async fn kill(&self, id: &SubmissionId) -> Result<bool, Error> {
        let live = self.store.request_kill(id).await?;
        if live {
            tracing::info!(submission = %id, "kill requested");
            self.wake.notify_one();
        }
        Ok(live)
    }

    /// Asks for the end of every live submission.
    pub async fn kill_all(&self) -> Result<(), Error> {
        let live = self.store.request_kill_of_all().await?;
        tracing::info!(live, "kill of all submissions requested");
        self.wake.notify_one();
        Ok(())
    }

    /// Forgets ended submissions, as far as Spark's protocol is concerned; their records stay.
    pub async fn clear(&self) -> Result<(), Error> {
        let cleared = self.store.clear_ended().await?;
        tracing::info!(cleared, "ended submissions cleared");
        Ok(())
    }

    /// Deletes the driver pod of a claimed submission, or records the end where there is no pod. The end of a deleted
    /// pod comes through the watch.
    pub(super) async fn carry_out_kill(&self, claimed: &Claimed) -> Result<Backoff, Error> {
        let pod = &claimed.names.driver_pod;
        match self.cluster.find_driver(&claimed.namespace, pod, &claimed.id, claimed.attempt).await {
            Ok(Found::Ours(seen)) => {
                self.observe(&seen).await?;
                // It may have ended before the kill reached it: a finished pod stays, with its log.
                let record = self.store.find(&claimed.id).await?;
                if record.is_none_or(|record| record.state.is_terminal()) {
                    return Ok(Backoff::None);
                }
                match self.cluster.delete_pod(&claimed.namespace, pod, &seen.pod_uid).await {
                    Ok(()) => Ok(Backoff::After(RECHECK)),
                    Err(error) => Ok(Backoff::failed(claimed, &error)),
                }
            }
            // No pod of ours, and while we hold the claim nobody makes one.
            Ok(Found::Nothing | Found::Foreign) => {
                if let Err(error) = self.forget_pre_resources(claimed).await {
                    return Ok(Backoff::failed(claimed, &error));
                }
                let end = Progress::Ended(Outcome::killed_on_request());
                self.store.advance(&claimed.id, claimed.attempt, &end, &Placement::default()).await?;
                Ok(Backoff::None)
            }
            Err(error) => Ok(Backoff::failed(claimed, &error)),
        }
    }
}
