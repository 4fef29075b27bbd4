//! What a driver is made of: what feature steps read, and what they make.

mod conf;
mod pod_group;
mod spark_pod;

use chrono::{DateTime, Utc};
use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service},
        networking::v1::NetworkPolicy,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Serialize;

use super::{DriverNames, SparkVersion, SubmitterFiles};
pub(crate) use conf::DriverConf;
pub use pod_group::PodGroup;
pub(crate) use spark_pod::SparkPod;

/// What a submission depends on besides the request itself.
#[derive(Debug, Clone)]
pub struct SubmitContext {
    pub version: SparkVersion,
    pub names: DriverNames,
    /// When the submission was accepted: `spark.app.submitTime` and the date in the properties' header.
    pub submitted_at: DateTime<Utc>,
    /// `SPARK_USER` of the pod where neither the request nor a proxy user names one.
    pub user: String,
    /// Files that lie at the submitter, as far as this submission can name them.
    pub submitter: SubmitterFiles,
}

/// The driver of one attempt. What the pod can't be scheduled without is created before it, all else after it; the pod
/// then owns them all.
#[derive(Debug, Clone)]
pub struct DriverObjects {
    pub namespace: String,
    pub pre_resources: Vec<Object>,
    pub pod: Pod,
    /// What the feature steps made, in their order; the main `ConfigMap` comes last.
    pub resources: Vec<Object>,
}

/// One object beside the pod.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "a driver has four of them, and they don't live long")]
pub enum Object {
    Service(Service),
    NetworkPolicy(NetworkPolicy),
    Secret(Secret),
    ConfigMap(ConfigMap),
    PersistentVolumeClaim(PersistentVolumeClaim),
    PodGroup(PodGroup),
}

impl Object {
    pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Service(object) => &mut object.metadata,
            Self::NetworkPolicy(object) => &mut object.metadata,
            Self::Secret(object) => &mut object.metadata,
            Self::ConfigMap(object) => &mut object.metadata,
            Self::PersistentVolumeClaim(object) => &mut object.metadata,
            Self::PodGroup(object) => &mut object.metadata,
        }
    }
}
