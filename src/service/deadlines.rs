//! Time limits: what is overdue is killed.

use super::{Error, Gateway};

/// Submissions of one statement.
const ROUND: u32 = 500;

impl Gateway {
    /// Kills what is overdue, up to a bounded number; tells whether there may be more at once. Several at once, in several
    /// processes, do no harm. Nothing is overdue while the clock of the database is doubted.
    pub async fn kill_overdue(&self) -> Result<bool, Error> {
        let Some(until) = self.believed_until("deadlines").await? else { return Ok(false) };
        let overdue = self.store.kill_overdue(ROUND, Some(until)).await?;
        if overdue.killed > 0 {
            tracing::info!(submissions = overdue.killed, "killed after their time");
            self.wake.notify_one();
            self.events.changed();
        }
        Ok(overdue.more)
    }
}
