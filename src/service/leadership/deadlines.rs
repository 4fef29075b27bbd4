//! Timeouts, set by the client or the operator: kills overdue submissions.

use std::{future::ready, sync::Arc, time::Duration};

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::Leadership;
use crate::service::error::{Error, error_chain};

/// Maximum number of submissions that one statement kills.
const ROUND: u32 = 500;
/// Pause between two rounds, unless more is due right now.
const PERIOD: Duration = Duration::from_secs(1);

impl Leadership {
    /// Kills a bounded number of overdue submissions, and returns whether more may be due right now. Concurrent calls, also of
    /// several processes, are safe. Nothing is overdue while the clock of the database is doubted.
    pub async fn kill_overdue(&self) -> Result<bool, Error> {
        let Some(until) = self.clock.believed_until("deadlines").await? else { return Ok(false) };
        let overdue = self.store.kill_overdue(ROUND, Some(until)).await?;
        if overdue.killed > 0 {
            tracing::info!(submissions = overdue.killed, "overdue submissions killed");
            self.wakeups.work_is_due();
            self.wakeups.state_changed();
        }
        Ok(overdue.more)
    }

    /// Kills overdue submissions round by round while this replica holds the lease, until `stop`.
    pub async fn run_deadlines(self: Arc<Self>, stop: CancellationToken) {
        self.leases.while_held("deadlines", &stop, || ready(Ok(true)), || self.deadline_rounds()).await;
    }

    async fn deadline_rounds(&self) {
        loop {
            let more = self.kill_overdue().await.unwrap_or_else(|error| {
                tracing::warn!(retry_in = ?PERIOD, "killing overdue submissions failed: {}", error_chain(&error));
                false
            });
            if !more {
                sleep(PERIOD).await;
            }
        }
    }
}
