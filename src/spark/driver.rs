//! From a request to the driver's objects.

use chrono::{DateTime, Utc};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Pod, Secret, Service},
    networking::v1::NetworkPolicy,
};

use super::{CreateSubmissionRequest, DriverNames, Refusal, SparkVersion};

/// What a submission depends on besides the request itself.
#[derive(Debug, Clone)]
pub struct SubmitContext {
    pub version: SparkVersion,
    pub names: DriverNames,
    /// When the submission was accepted: `spark.app.submitTime` and the date in the properties' header.
    pub submitted_at: DateTime<Utc>,
    /// `SPARK_USER` of the pod where neither the request nor a proxy user names one.
    pub user: String,
}

/// The driver of one attempt. The pod is created first; the others, in this order, are then owned by it.
#[derive(Debug, Clone)]
pub struct DriverObjects {
    pub namespace: String,
    pub pod: Pod,
    pub resources: Vec<Object>,
}

/// One object beside the pod.
#[derive(Debug, Clone)]
pub enum Object {
    Service(Service),
    NetworkPolicy(NetworkPolicy),
    Secret(Secret),
    ConfigMap(ConfigMap),
}

/// Builds the objects that `spark-submit --master k8s:// --deploy-mode cluster` would create.
///
/// # Errors
/// A [`Refusal`] where Spark would refuse, or where the request asks for a feature step that isn't there.
pub fn build_driver(request: &CreateSubmissionRequest, context: &SubmitContext) -> Result<DriverObjects, Refusal> {
    let _ = (request, context);
    Err(Refusal::field("appResource", "not built yet"))
}
