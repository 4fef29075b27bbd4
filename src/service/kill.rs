//! Kill requests, and Spark's `clear`.

use super::{Error, Gateway};
use crate::{store::KillAnswer, submission::SubmissionId};

impl Gateway {
    /// Requests the kill of a submission. Returns `false` if no submission has that id or it has ended already.
    pub async fn kill(&self, id: &SubmissionId) -> Result<bool, Error> {
        Ok(self.request_kill(id).await?.live)
    }

    /// Requests the kill of a submission and returns the result.
    pub async fn request_kill(&self, id: &SubmissionId) -> Result<KillAnswer, Error> {
        let answer = self.store.request_kill(id).await?;
        if answer.live {
            tracing::info!(submission = %id, "kill requested");
            self.wake.notify_one();
            self.events.changed();
        }
        Ok(answer)
    }

    /// Requests the kill of every live submission.
    pub async fn kill_all(&self) -> Result<(), Error> {
        let live = self.store.request_kill_of_all().await?;
        tracing::info!(live, "kill of all submissions requested");
        self.wake.notify_one();
        self.events.changed();
        Ok(())
    }

    /// Hides ended submissions from Spark's protocol. Their records stay.
    pub async fn clear(&self) -> Result<(), Error> {
        let cleared = self.store.clear_ended().await?;
        tracing::info!(cleared, "ended submissions cleared");
        Ok(())
    }
}
