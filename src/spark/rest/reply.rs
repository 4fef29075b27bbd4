//! The replies. Each has its `action`, the server's Spark version, and `success` unless it is an error.

use serde::Serialize;
use utoipa::ToSchema;

/// The submission is kept and will be run.
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
    /// Names in the request that mean nothing here, in the request's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub unknown_fields: Vec<String>,
}

/// What became of a kill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KillSubmissionResponse {
    #[schema(example = "KillSubmissionResponse")]
    pub action: &'static str,
    /// Never absent: clients look at how it begins.
    #[schema(example = "Kill request for driver-20260102030405-0001 submitted")]
    pub message: String,
    #[schema(example = "4.3.0")]
    pub server_spark_version: String,
    pub submission_id: String,
    /// False if the driver has ended or was never known.
    pub success: bool,
}

/// All drivers are asked to end.
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

/// Ended submissions are forgotten.
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

/// Submissions are taken.
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

/// Where a submission is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubmissionStatusResponse {
    #[schema(example = "SubmissionStatusResponse")]
    pub action: &'static str,
    /// SUBMITTED, RUNNING, FINISHED, KILLED, FAILED or ERROR; absent if the submission is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "RUNNING")]
    pub driver_state: Option<&'static str>,
    /// Why it ended badly, where that is known.
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
    /// `v1`, present if the request's path asks for another version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highest_protocol_version: Option<&'static str>,
    pub message: String,
    #[schema(example = "4.3.0")]
    pub server_spark_version: String,
}
