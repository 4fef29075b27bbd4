//! The request of both HTTP APIs and of `sparkgate render`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Spark's `CreateSubmissionRequest` (`org.apache.spark.deploy.rest.CreateSubmissionRequest`) after Jackson's coercions,
/// with the fields that the resource API adds. The request is also stored in the database in this form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateSubmissionRequest {
    pub client_spark_version: String,
    pub app_resource: String,
    pub main_class: String,
    #[serde(default)]
    pub app_args: Vec<String>,
    pub spark_properties: BTreeMap<String, String>,
    #[serde(default)]
    pub environment_variables: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver_pod_template: Option<serde_json::Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor_pod_template: Option<serde_json::Value>,
}
