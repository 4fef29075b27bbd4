//! From a request to the driver's objects.

mod builder;
mod conf;
mod config_map;
mod pod_group;

use chrono::{DateTime, Utc};
use k8s_openapi::api::{
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service},
    networking::v1::NetworkPolicy,
};

use super::{CreateSubmissionRequest, DriverNames, Refusal, SparkVersion, SubmitterFiles, submit};
pub(crate) use builder::SparkPod;
pub(crate) use conf::DriverConf;
pub use pod_group::PodGroup;

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
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "a driver has four of them, and they don't live long")]
pub enum Object {
    Service(Service),
    NetworkPolicy(NetworkPolicy),
    Secret(Secret),
    ConfigMap(ConfigMap),
    PersistentVolumeClaim(PersistentVolumeClaim),
    PodGroup(PodGroup),
}

/// Builds the objects that `spark-submit --master k8s:// --deploy-mode cluster` would create.
///
/// The same request and context give the same objects. Every object carries its namespace; none carries an owner
/// reference, since the pod's uid is not known before it exists.
///
/// # Errors
/// A [`Refusal`] where Spark would refuse, or where the request asks for a feature step that isn't there.
pub fn build_driver(request: &CreateSubmissionRequest, context: &SubmitContext) -> Result<DriverObjects, Refusal> {
    let application = submit::prepare(request, context.version, context.submitted_at)?;
    builder::build(&DriverConf::new(application, context))
}

#[cfg(test)]
mod tests;
