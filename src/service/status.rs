//! Answering the state of a submission, from the database alone.

use super::{Error, Gateway};
use crate::{
    store::Record,
    submission::{DriverState, KillCause, Outcome, State, SubmissionId},
};

/// What a status reply says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    pub id: SubmissionId,
    pub driver_state: DriverState,
    /// Why it ended as it did or why it still waits. Clients print it as an error, so a good end has none.
    pub message: Option<String>,
    /// Where the driver runs, once it was placed.
    pub worker: Option<Worker>,
}

/// Spark's standalone words for a place: here the node and the driver pod's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worker {
    pub id: String,
    pub host_port: String,
}

/// `spark.driver.port` on Kubernetes, as Spark's images have it.
const DRIVER_PORT: u16 = 7078;

impl Gateway {
    /// The state of a submission; `None` if there is none of that id, or if it was cleared.
    pub async fn status(&self, id: &SubmissionId) -> Result<Option<Status>, Error> {
        let record = self.store.find(id).await?;
        Ok(record.filter(|record| !record.cleared).map(status))
    }
}

fn status(record: Record) -> Status {
    let started = record.started_at.is_some();
    let message = match record.state {
        State::Finished | State::Running => None,
        // As asked for: nothing to report, unless the kill meets a difficulty.
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
