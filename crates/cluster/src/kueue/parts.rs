//! The parts of a `Workload` that are read.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::admission::{Admission, PodSetUpdate};

/// The parts of a `Workload` that are read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Parts {
    pub(super) spec: Spec,
    pub(super) status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub(super) active: Option<bool>,
    pub(super) queue_name: String,
    pub(super) pod_sets: Vec<PodSet>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct PodSet {
    pub(super) name: String,
    pub(super) count: u32,
    pub(super) min_count: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    conditions: Vec<Condition>,
    pub(super) admission: Option<Admission>,
    pub(super) requeue_state: Option<RequeueState>,
    pub(super) admission_checks: Vec<Check>,
    pub(super) resource_requests: Vec<PodSetRequest>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
    pub(super) reason: String,
    pub(super) message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RequeueState {
    pub(super) requeue_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Check {
    pub(super) name: String,
    pub(super) state: String,
    pub(super) message: String,
    pub(super) pod_set_updates: Vec<PodSetUpdate>,
}

/// What Kueue has computed that all pods of a set need.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PodSetRequest {
    pub(super) name: String,
    pub(super) resources: BTreeMap<String, String>,
}

impl Status {
    pub(super) fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// Returns a condition that is true.
    pub(super) fn holds(&self, type_: &str) -> Option<&Condition> {
        self.condition(type_).filter(|condition| condition.status == "True")
    }
}
