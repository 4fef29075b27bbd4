//! Timeouts, set by the client or the operator: kills overdue submissions.

use std::{future::ready, sync::Arc, time::Duration};

use chrono::Utc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::Leadership;
use sparkgate_common::error::{Error, error_chain};

/// Maximum number of submissions that one statement kills.
const ROUND: u32 = 500;
/// Pause between two rounds, unless more is due right now.
const PERIOD: Duration = Duration::from_secs(1);
/// Interval at which deadlines are corrected that were written while the clock of the database was ahead.
const CORRECTION: Duration = Duration::from_secs(60);

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

    /// Lets timeouts begin now whose deadlines were written by a clock of the database that was ahead.
    async fn correct_deadlines(&self) -> Result<(), Error> {
        let Some(until) = self.clock.believed_until("deadlines").await? else { return Ok(()) };
        let submissions = self.store.bring_deadlines_back(ROUND, Utc::now(), Some(until)).await?;
        if submissions > 0 {
            tracing::warn!(
                submissions,
                "deadlines corrected that were written while the clock of the database was ahead: the timeouts begin now"
            );
        }
        Ok(())
    }

    async fn deadline_rounds(&self) {
        let mut corrected: Option<Instant> = None;
        loop {
            if corrected.is_none_or(|at| at.elapsed() >= CORRECTION) {
                corrected = Some(Instant::now());
                if let Err(error) = self.correct_deadlines().await {
                    tracing::warn!(retry_in = ?CORRECTION, "correcting deadlines failed: {}", error_chain(&error));
                }
            }
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
