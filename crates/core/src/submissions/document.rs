//! The document of one submission: what is shown of it, and of what features know of it.

use serde_json::Value;

use super::{
    Submissions,
    failure_reason::FailureReason,
    waiting::{Waiting, pause},
};
use crate::usage::Usage;
use sparkgate_common::error::Error;
use sparkgate_store::{Lateness, SparkSummary, StartupTimes, Submission, SubmissionDocument, SubmissionUsage};
use sparkgate_submission::SubmissionId;
use sparkgate_tenancy::session::Session;

/// A submission with what features know of it.
#[derive(Debug)]
pub struct Document {
    pub submission: Submission,
    /// Why it failed, or doesn't run yet.
    pub why: Option<FailureReason>,
    /// `None` before its first pod.
    pub usage: Option<SubmissionUsage>,
    /// What it waits for, if it is queued in a queue or held.
    pub waiting: Option<Waiting>,
    /// What its driver said last of its jobs and stages.
    pub spark: Option<SparkSummary>,
    /// What the launch of the current attempt changed in its objects.
    pub launch_changes: Option<Value>,
    /// When the steps of the current attempt's start happened, beside those of its row.
    pub startup: StartupTimes,
    /// That the current attempt takes longer than expected, once that was reported.
    pub late: Option<Lateness>,
}

impl Submissions {
    /// Returns the document of a submission that the caller may see, or `None` if none has that id. Reads the database once; while the
    /// driver starts, also the events of its pod.
    pub async fn document(
        &self,
        caller: &Session,
        id: &SubmissionId,
        usage: &Usage,
    ) -> Result<Option<Document>, Error> {
        let read = self.store.scoped(&caller.readable()).document(id, usage.prices(caller)).await?;
        let Some(SubmissionDocument { submission, usage, spark, archive, standing, launch_changes, startup, late }) =
            read
        else {
            return Ok(None);
        };
        let archived = archive.map(|kept| self.witness.read(kept)).unwrap_or_default();
        let mut why = self.reason(&submission, archived).await;
        let pause = standing.as_ref().and_then(pause);
        let waiting = Waiting::of(&submission, standing, pause.as_deref());
        let reason = waiting.as_ref().map(|waiting| waiting.reason.clone()).or(pause);
        if let (Some(why), Some(reason)) = (&mut why, reason) {
            why.message = reason;
        }
        Ok(Some(Document { submission, why, usage, waiting, spark, launch_changes, startup, late }))
    }
}
