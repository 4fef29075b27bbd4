//! The clean-up of stored logs, by one replica for all.

use std::{future::ready, sync::Arc, time::Duration};

use chrono::Utc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Leadership;
use crate::service::error::error_chain;

/// Pause between two comparisons of the store with the database.
const SWEEP: Duration = Duration::from_secs(3600);
/// Pause after one that failed.
const RETRY: Duration = Duration::from_secs(300);

impl Leadership {
    /// Deletes the logs of deleted records while this replica holds the lease, until `stop`.
    pub async fn run_clean_up_of_logs(self: Arc<Self>, stop: CancellationToken) {
        if !self.logs.are_stored() {
            return stop.cancelled().await;
        }
        self.leases.while_held("logs", &stop, || ready(Ok(true)), || self.rounds_of_logs()).await;
    }

    async fn rounds_of_logs(&self) {
        loop {
            let pause = match self.logs.sweep(Utc::now()).await {
                Ok(0) => SWEEP,
                Ok(submissions) => {
                    tracing::info!(submissions, "logs of deleted submissions deleted");
                    SWEEP
                }
                Err(error) => {
                    tracing::warn!(retry_in = ?RETRY, "clean-up of logs failed: {}", error_chain(&error));
                    RETRY
                }
            };
            sleep(pause).await;
        }
    }
}
