//! The replies. Each reply has its `action`, the server's Spark version, and, unless it is an error, `success`.

use serde::Serialize;
use utoipa::ToSchema;

/// The submission is stored and will be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateSubmissionResponse {
    #[schema(example = "CreateSubmissionResponse")]
    pub action: &'static str,
    #[schema(example = "Driver successfully submitted as driver-20260102030405-0001")]
    pub message: String,
    #[schema(example = "4.3.0")]
    pub server_spark_version: String,
    #[schema(example = "driver-20260102030405-0001")]
    pub submission_id: String,
    pub success: bool,
    /// Names of fields that are unknown, null or repeated, in the order of the request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub unknown_fields: Vec<String>,
}

/// The result of a kill request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KillSubmissionResponse {
    #[schema(example = "KillSubmissionResponse")]
    pub action: &'static str,
    /// Always present: clients check how it begins.
    #[schema(example = "Kill request for driver-20260102030405-0001 submitted")]
    pub message: String,
    #[schema(example = "4.3.0")]
    pub server_spark_version: String,
    pub submission_id: String,
    /// False if the driver has ended or is unknown.
    pub success: bool,
}

/// All drivers are being killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KillAllSubmissionResponse {
    #[schema(example = "KillAllSubmissionResponse")]
    pub action: &'static str,
    pub message: String,
    #[schema(example = "4.3.0")]
    pub server_spark_version: String,
    pub success: bool,
}

/// Ended submissions are cleared: Spark's API no longer returns them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClearResponse {
    #[schema(example = "ClearResponse")]
    pub action: &'static str,
    pub message: String,
    #[schema(example = "4.3.0")]
    pub server_spark_version: String,
    pub success: bool,
}

/// The server accepts submissions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadyzResponse {
    #[schema(example = "ReadyzResponse")]
    pub action: &'static str,
    pub message: String,
    #[schema(example = "4.3.0")]
    pub server_spark_version: String,
    pub success: bool,
}

/// The state of a submission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubmissionStatusResponse {
    #[schema(example = "SubmissionStatusResponse")]
    pub action: &'static str,
    /// SUBMITTED, RUNNING, FINISHED, KILLED, FAILED or ERROR; absent if the submission is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "RUNNING")]
    pub driver_state: Option<&'static str>,
    /// Why the submission failed, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[schema(example = "4.3.0")]
    pub server_spark_version: String,
    pub submission_id: String,
    /// Whether the submission is known.
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_host_port: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker_id: Option<String>,
}

/// The request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorResponse {
    #[schema(example = "ErrorResponse")]
    pub action: &'static str,
    /// `v1`; present if the request's path names another version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highest_protocol_version: Option<&'static str>,
    pub message: String,
    #[schema(example = "4.3.0")]
    pub server_spark_version: String,
}
