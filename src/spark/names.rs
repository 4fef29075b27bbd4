//! The names of one attempt, drawn once and kept, so that a repeated launch meets its own objects.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// All names and ids that an attempt will ever use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriverNames {
    /// `spark.app.id`: `spark-` and 32 hex digits.
    pub app_id: String,
    /// What most objects' names begin with: the sanitised application name and a unique id.
    pub resource_prefix: String,
    pub driver_pod: String,
    pub driver_service: String,
    /// The main ConfigMap, `spark-drv-<unique id>-conf-map`.
    pub config_map: String,
    /// The random part of the default local directory, `/var/data/spark-<uuid>`.
    pub local_dir: Uuid,
}

/// The randomness that names are made of.
pub struct NameEntropy;
impl NameEntropy {
    pub fn from_uuids(_: Uuid, _: Uuid, _: Uuid, _: Uuid) -> Self {
        Self
    }
}
impl DriverNames {
    /// stand-in
    pub fn for_request(_: &super::CreateSubmissionRequest, _: i64, _: &NameEntropy) -> Result<Self, super::Refusal> {
        Err(super::Refusal::field("a", "b"))
    }
}
