//! Changes that a launch made in the objects of an attempt.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// What a feature changed in the objects of an attempt at its launch: why the driver isn't what the request says.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LaunchChange {
    /// The feature: `kueue` put the places and the number of executors that Kueue admitted on the driver, and `memoryGrowth` gave more
    /// memory to what ran out of it in an earlier attempt, `afterNodeLoss` moved it to other nodes, and `lineage` named the run of the attempt to `OpenLineage`'s listener.
    #[schema(example = "kueue")]
    by: String,
    /// What the driver's pod got.
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<PodChange>,
    /// Amounts of the driver's container by resource.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    driver_resources: BTreeMap<String, String>,
    /// What each executor's pod gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    executor: Option<PodChange>,
    /// Node selectors of the driver and its executors that replace those of the request; null: removed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    node_selector: BTreeMap<String, Option<String>>,
    /// Properties of the driver process that replace those of the request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false, example = json!({"spark.dynamicAllocation.maxExecutors": "8"}))]
    properties: BTreeMap<String, String>,
}

/// What a pod got at the launch.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
struct PodChange {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false, example = json!({"pool": "spot"}))]
    node_selector: BTreeMap<String, String>,
    /// Tolerations, as Kubernetes has them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, value_type = Vec<Object>)]
    tolerations: Vec<Value>,
}

/// Reads the changes that are stored. Those that this release can't read are left out.
pub(super) fn read(stored: Option<Value>) -> Vec<LaunchChange> {
    let Some(Value::Array(changes)) = stored else { return Vec::new() };
    changes.into_iter().filter_map(|change| serde_json::from_value(change).ok()).collect()
}
