//! What Kueue has admitted.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use serde::Deserialize;

/// What was admitted.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Admission {
    pub cluster_queue: String,
    #[serde(rename = "podSetAssignments")]
    pub assignments: Vec<Assignment>,
    /// Changes by admission checks.
    #[serde(skip)]
    pub updates: Vec<PodSetUpdate>,
}

/// What was admitted for one set of pods.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Assignment {
    pub name: String,
    /// The flavor of each resource.
    pub flavors: BTreeMap<String, String>,
    pub count: Option<u32>,
}

/// What an admission check changes in one set of pods.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSetUpdate {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub node_selector: BTreeMap<String, String>,
    pub tolerations: Vec<Toleration>,
}
