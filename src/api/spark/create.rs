//! `POST /v1/submissions/create`

use std::collections::BTreeMap;

use tracing::Instrument;
use utoipa::ToSchema;

use super::Fault;
use crate::{
    service::{Gateway, SubmissionOptions},
    spark::rest::{CreateSubmissionResponse, ErrorResponse, parse_create},
};

/// What to run. Numbers and booleans are taken where texts are asked for; names that aren't listed here are accepted
/// and come back as `unknownFields`.
#[derive(ToSchema)]
#[schema(as = CreateSubmissionRequest, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body to readers of the API; `parse_create` is what reads it")]
pub(in crate::api) struct RequestBody {
    #[schema(example = "CreateSubmissionRequest")]
    action: String,
    #[schema(example = "4.3.0")]
    client_spark_version: String,
    /// The application's jar, Python or R file; empty where `mainClass` is `org.apache.spark.deploy.SparkSubmit`.
    #[schema(example = "local:///opt/spark/examples/jars/spark-examples.jar")]
    app_resource: String,
    #[schema(example = "org.apache.spark.examples.SparkPi")]
    main_class: String,
    /// Required by Spark 3.5.
    #[schema(required = false)]
    app_args: Vec<String>,
    spark_properties: BTreeMap<String, String>,
    /// Required by Spark 3.5.
    #[schema(required = false)]
    environment_variables: BTreeMap<String, String>,
    /// The user whom the application acts as: `--proxy-user`.
    proxy_user: Option<String>,
    /// What the driver's pod begins with: a pod as an object, the same as YAML text, or the name of a file that the
    /// gateway's operator gave. It wins over `spark.kubernetes.driver.podTemplateFile`.
    driver_pod_template: Option<serde_json::Value>,
    /// What executors' pods begin with, in the same three forms. It wins over
    /// `spark.kubernetes.executor.podTemplateFile`.
    executor_pod_template: Option<serde_json::Value>,
}

/// Submit an application
///
/// Answers as soon as the submission is kept; the driver is created afterwards.
#[utoipa::path(
    post, path = "/v1/submissions/create", tag = "Spark", operation_id = "createSubmission",
    request_body = RequestBody,
    responses(
        (status = 200, description = "Kept; it will be run", body = CreateSubmissionResponse),
        (status = 400, description = "The request can't be run; the message names the field", body = ErrorResponse),
        (status = 409, description = "A live submission has the name that is to be unique", body = ErrorResponse),
        (status = 413, description = "The body is too large", body = ErrorResponse),
        (status = 422, description = "The idempotency key was used for another request", body = ErrorResponse),
        (status = 500, description = "A fault of the gateway", body = ErrorResponse),
        (status = 503, description = "The database can't be reached: with `Retry-After` nothing is kept, try again; without it the submission may have been accepted", body = ErrorResponse),
    )
)]
pub(in crate::api) async fn create(
    gateway: &Gateway,
    body: &[u8],
    key: Option<String>,
) -> Result<CreateSubmissionResponse, Fault> {
    let options = SubmissionOptions { idempotency_key: key, ..SubmissionOptions::default() };
    let version = gateway.spark_version();
    let (request, unknown_fields) = parse_create(body, version)?;
    // In a task of its own: a client that hangs up must not leave the submission half accepted.
    let gateway = gateway.clone();
    let submit = tokio::spawn(async move { gateway.submit(request, options).await }.in_current_span());
    let id = submit.await.map_err(Fault::BrokenOff)??.submission.id;
    Ok(CreateSubmissionResponse {
        action: "CreateSubmissionResponse",
        message: format!("Driver successfully submitted as {id}"),
        server_spark_version: version.to_string(),
        submission_id: id.to_string(),
        success: true,
        unknown_fields,
    })
}
