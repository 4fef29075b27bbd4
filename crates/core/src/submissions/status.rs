//! Reads the status of a submission, from the database alone.

use super::Submissions;
use sparkgate_common::error::Error;
use sparkgate_store::Record;
use sparkgate_submission::{DriverState, KillCause, Outcome, State, SubmissionId};
use sparkgate_tenancy::session::Session;

/// The content of a status reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub id: SubmissionId,
    pub driver_state: DriverState,
    /// Why the submission ended as it did, or why it still waits. Clients print it as an error, so a successful one has none.
    pub message: Option<String>,
    /// Where the driver runs, once its pod is scheduled.
    pub worker: Option<Worker>,
}

/// Spark standalone's worker: here, the node and the driver pod's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub id: String,
    pub host_port: String,
}

/// `spark.driver.port` on Kubernetes, as Spark's images have it.
const DRIVER_PORT: u16 = 7078;

impl Submissions {
    /// Returns the status of a submission; `None` if no submission has this id, or if it was cleared.
    pub async fn status(&self, caller: &Session, id: &SubmissionId) -> Result<Option<Status>, Error> {
        let record = self.store.scoped(&caller.readable()).find(id).await?;
        Ok(record.filter(|record| !record.cleared).map(status))
    }
}

fn status(record: Record) -> Status {
    let started = record.started_at.is_some();
    let message = match record.state {
        State::Finished | State::Running => None,
        // Killed on request: nothing to report, unless the kill fails.
        State::Killed if record.reason.as_deref() == Some(Outcome::ON_REQUEST) => None,
        State::Killing => record.message.filter(|text| text != KillCause::Request.message()),
        _ => record.message.filter(|text| !text.is_empty()).map(|text| match record.reason {
            Some(reason) if !text.contains(&reason) => format!("{reason}: {text}"),
            _ => text,
        }),
    };
    let worker = match (record.node, record.pod_ip) {
        (Some(id), Some(ip)) => Some(Worker { id, host_port: format!("{ip}:{DRIVER_PORT}") }),
        _ => None,
    };
    Status { id: record.id, driver_state: record.state.driver_state(started), message, worker }
}
