//! The gateway's documents, as far as they are displayed. Every field is optional, so that documents of older and newer
//! gateways can be displayed too.

use std::{collections::BTreeMap, fmt};

use chrono::{DateTime, Utc};
use serde::{Deserialize, de::DeserializeOwned};

use super::error::Error;
use sparkgate_submission::{FailureCode, State};

/// Parses a document. `action` is for the error message.
pub(super) fn read<T: DeserializeOwned>(action: &str, body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body)
        .map_err(|error| Error::NotUnderstood { action: action.to_owned(), cause: error.to_string() })
}

#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Submission {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) state: String,
    pub(super) owner: String,
    pub(super) tenant: String,
    pub(super) principal: String,
    pub(super) principal_name: Option<String>,
    pub(super) namespace: String,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) spark_version: Option<String>,
    pub(super) application_id: Option<String>,
    pub(super) attempt: i64,
    pub(super) created_at: Option<DateTime<Utc>>,
    pub(super) started_at: Option<DateTime<Utc>>,
    pub(super) finished_at: Option<DateTime<Utc>>,
    pub(super) driver: Driver,
    /// Counts by state. They are displayed in the order of [`EXECUTOR_STATES`].
    pub(super) executors: BTreeMap<String, i64>,
    pub(super) limits: Limits,
    pub(super) retries: BTreeMap<String, i64>,
    pub(super) queue: Option<String>,
    pub(super) priority: Option<i64>,
    pub(super) queue_place: Option<QueuePlace>,
    pub(super) waiting: Option<Why>,
    pub(super) failure: Option<Why>,
    pub(super) exit_code: Option<i64>,
    pub(super) usage: Option<Usage>,
    pub(super) startup: Vec<StartupStep>,
    pub(super) late: Option<Late>,
    pub(super) warnings: Vec<String>,
}

/// A run that takes longer than expected.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Late {
    pub(super) expected_seconds: u64,
    /// Of how many earlier runs that is the median.
    pub(super) runs: Option<u64>,
}

/// A step of a start.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct StartupStep {
    pub(super) step: String,
    /// Since the one before.
    pub(super) seconds: f64,
}

/// Where a submission stands in its queue.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct QueuePlace {
    pub(super) ahead: Option<u64>,
    pub(super) estimate: Option<Estimate>,
}

/// When it is admitted, in seconds.
#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Estimate {
    pub(super) seconds: u64,
    pub(super) error_seconds: u64,
    pub(super) admissions: u64,
}

/// What drivers and executors used.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Usage {
    pub(super) driver: Used,
    pub(super) executors: Used,
    pub(super) total: Used,
    pub(super) estimated: Option<Used>,
    pub(super) cost: Option<Cost>,
}

/// Reserved cores and memory, multiplied by the time.
#[derive(Debug, Default, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Used {
    core_seconds: f64,
    memory_byte_seconds: f64,
}

impl Used {
    pub(super) fn core_hours(&self) -> String {
        format!("{:.2}", self.core_seconds / 3600.0)
    }

    pub(super) fn gib_hours(&self) -> String {
        format!("{:.2}", self.memory_byte_seconds / (1024.0 * 1024.0 * 1024.0) / 3600.0)
    }
}

#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Cost {
    amount: f64,
    currency: Option<String>,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}", self.amount)?;
        self.currency.iter().try_for_each(|currency| write!(f, " {currency}"))
    }
}

/// The known states of executors, in the order of the life cycle.
pub(super) const EXECUTOR_STATES: [&str; 5] = ["pending", "running", "succeeded", "failed", "deleted"];

#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Driver {
    pub(super) pod: Option<String>,
    pub(super) node: Option<String>,
    pub(super) ip: Option<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Limits {
    pub(super) start_seconds: Option<u64>,
    pub(super) run_seconds: Option<u64>,
    pub(super) kill_grace_seconds: Option<u64>,
}

/// Why a submission failed, or isn't running yet.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Why {
    pub(super) code: String,
    pub(super) class: String,
    pub(super) message: String,
    pub(super) reason: Option<String>,
    pub(super) exit_code: Option<i64>,
    pub(super) signal: Option<String>,
    pub(super) events: Vec<PodEvent>,
    pub(super) log_tail: Option<String>,
}

/// An event of Kubernetes about the driver's pod.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct PodEvent {
    pub(super) at: Option<DateTime<Utc>>,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) count: Option<i64>,
}

/// One attempt of a submission.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Attempt {
    pub(super) attempt: i64,
    pub(super) state: String,
    pub(super) queued_at: Option<DateTime<Utc>>,
    pub(super) started_at: Option<DateTime<Utc>>,
    pub(super) finished_at: Option<DateTime<Utc>>,
    pub(super) failure: Option<Why>,
}

/// One change of a submission's state.
#[derive(Debug, Default, Clone, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Change {
    pub(super) sequence: Option<i64>,
    pub(super) submission_id: String,
    pub(super) attempt: i64,
    pub(super) state: String,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    pub(super) at: Option<DateTime<Utc>>,
}

impl Submission {
    pub(super) fn state(&self) -> Option<State> {
        self.state.parse().ok()
    }

    pub(super) fn is_held(&self) -> bool {
        self.waiting.as_ref().is_some_and(|why| why.code == FailureCode::Held.as_str())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state().is_some_and(State::is_terminal)
    }

    /// Returns the exit code for scripts: 0 for FINISHED, the driver's exit code if it is from 1 to 125, otherwise 1.
    pub(super) fn exit_status(&self) -> u8 {
        if self.state == State::Finished.as_str() {
            return 0;
        }
        let code = self.exit_code.or_else(|| self.failure.as_ref().and_then(|failure| failure.exit_code));
        code.and_then(|code| u8::try_from(code).ok()).filter(|code| (1..=125).contains(code)).unwrap_or(1)
    }
}

/// Parses an example of a document for a test. Each field of the example must be one of the schema in the API's description, so that
/// the client reads what a gateway sends.
#[cfg(test)]
pub(super) fn documented<T: serde::de::DeserializeOwned>(schema: &str, text: &str) -> T {
    const DESCRIPTION: &str = include_str!("../../../openapi/sparkgate.json");
    let description: serde_json::Value = serde_json::from_str(DESCRIPTION).unwrap();
    let properties = &description["components"]["schemas"][schema]["properties"];
    let example: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).unwrap();
    for field in example.keys() {
        assert!(properties.get(field).is_some(), "{schema} has no field `{field}`");
    }
    serde_json::from_str(text).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_status_is_the_drivers_exit_code_from_1_to_125() {
        let status = |state: &str, exit_code| {
            Submission { state: state.to_owned(), exit_code, ..Submission::default() }.exit_status()
        };
        assert_eq!(status("FINISHED", Some(0)), 0);
        assert_eq!(status("FAILED", Some(3)), 3);
        assert_eq!(status("FAILED", Some(137)), 1, "a signal is not an exit code");
        assert_eq!(status("FAILED", Some(0)), 1, "never success");
        assert_eq!(status("KILLED", None), 1);
    }

    #[test]
    fn document_of_another_release_is_parsed_as_far_as_it_is_known() {
        let text = br#"{"id": "driver-1-1", "state": "PONDERING", "newField": [1], "executors": {"sleeping": 3}}"#;
        let submission: Submission = read("reading it", text).unwrap();
        assert_eq!((submission.state(), submission.executors["sleeping"]), (None, 3));
        assert!(!submission.has_ended());
        let error = read::<Submission>("reading it", b"<html>").unwrap_err();
        assert!(error.to_string().starts_with("reading it: the response is not one of a Sparkgate"), "{error}");
    }
}
