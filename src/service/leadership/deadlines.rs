//! Timeouts: kills overdue submissions.

use super::{Error, Gateway};

/// Maximum number of submissions that one statement kills.
const ROUND: u32 = 500;

impl Gateway {
    /// Kills a bounded number of overdue submissions, and returns whether more may be due right now. Concurrent calls, also of
    /// several processes, are safe. Nothing is overdue while the clock of the database is doubted.
    pub async fn kill_overdue(&self) -> Result<bool, Error> {
        let Some(until) = self.believed_until("deadlines").await? else { return Ok(false) };
        let overdue = self.store.kill_overdue(ROUND, Some(until)).await?;
        if overdue.killed > 0 {
            tracing::info!(submissions = overdue.killed, "overdue submissions killed");
            self.wake.notify_one();
            self.events.changed();
        }
        Ok(overdue.more)
    }
}
