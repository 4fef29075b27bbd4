//! Time limits: what is overdue is killed.

use super::{Error, Gateway};

/// Submissions of one statement.
const ROUND: u32 = 500;

impl Gateway {
    /// Kills what is overdue, up to a bounded number; tells whether there may be more at once. Several at once, in several
    /// processes, do no harm.
    pub async fn kill_overdue(&self) -> Result<bool, Error> {
        let overdue = self.store.kill_overdue(ROUND).await?;
        if overdue.killed > 0 {
            tracing::info!(submissions = overdue.killed, "killed after their time");
            self.wake.notify_one();
            self.events.changed();
        }
        Ok(overdue.more)
    }
}
