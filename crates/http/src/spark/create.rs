//! `POST /v1/submissions/create`

use std::collections::BTreeMap;

use utoipa::ToSchema;

use super::fault::Fault;
use sparkgate_service::{Found, Service, Session, SubmissionOptions};
use sparkgate_spark::rest::{CreateSubmissionResponse, ErrorResponse, parse_create_of};
use sparkgate_web::body::Held;

/// The application to run. Numbers and booleans are accepted where strings are expected. Fields that aren't listed here
/// are accepted and returned as `unknownFields`.
#[derive(ToSchema)]
#[schema(as = CreateSubmissionRequest, rename_all = "camelCase", example = json!({
    "action": "CreateSubmissionRequest",
    "clientSparkVersion": "4.3.0",
    "appResource": "local:///opt/spark/examples/src/main/python/pi.py",
    "mainClass": "org.apache.spark.deploy.PythonRunner",
    "appArgs": ["10"],
    "environmentVariables": {},
    "sparkProperties": {"spark.app.name": "Pi", "spark.executor.instances": "1"}
}))]
#[expect(dead_code, reason = "only describes the body; `parse_create_of` reads it")]
pub(crate) struct RequestBody {
    action: String,
    client_spark_version: String,
    /// The application's jar, Python or R file; empty if `mainClass` is `org.apache.spark.deploy.SparkSubmit`.
    app_resource: String,
    main_class: String,
    /// Required by Spark 3.5.
    #[schema(required = false)]
    app_args: Vec<String>,
    spark_properties: BTreeMap<String, String>,
    /// Required by Spark 3.5.
    #[schema(required = false)]
    environment_variables: BTreeMap<String, String>,
    /// The user that the application impersonates: `--proxy-user`.
    proxy_user: Option<String>,
    /// The template of the driver's pod: a pod as a JSON object, a pod as a string of YAML, or the name of a template
    /// that the gateway's operator provides. It takes precedence over `spark.kubernetes.driver.podTemplateFile`.
    driver_pod_template: Option<serde_json::Value>,
    /// The template of executors' pods, in the same three forms. It takes precedence over
    /// `spark.kubernetes.executor.podTemplateFile`.
    executor_pod_template: Option<serde_json::Value>,
}

/// Submit an application
///
/// Answers as soon as the submission is committed; the driver is created afterwards.
#[utoipa::path(
    post, path = "/v1/submissions/create", tag = "Spark", operation_id = "createSubmission",
    request_body = RequestBody,
    responses(
        (status = 200, description = "Committed; it will be run", body = CreateSubmissionResponse),
        (status = 400, description = "The request is invalid; the message names the field", body = ErrorResponse),
        (status = 409, description = "A submission of the tenant has this id of a client, or a live submission this unique name", body = ErrorResponse),
        (status = 413, description = "The body is too large", body = ErrorResponse),
        (status = 422, description = "The idempotency key was used for another request, or no queue takes the submission", body = ErrorResponse),
        (status = 500, description = "Internal error of the gateway", body = ErrorResponse),
        (status = 503, description = "The database can't be reached. With `Retry-After`: nothing was stored, try again. Without it: the submission may have been accepted", body = ErrorResponse),
    )
)]
pub(crate) async fn create(
    service: &Service,
    caller: Session,
    body: &[u8],
    key: Option<String>,
    held: Option<Held>,
) -> Result<CreateSubmissionResponse, Fault> {
    let options = SubmissionOptions { idempotency_key: key, ..SubmissionOptions::default() };
    let own = service.submissions.spark_version();
    // Its own release is known only after its defaults; the newest one knows all units.
    let (request, unknown_fields) = parse_create_of(body, own, caller.spark_lines().newest())?;
    let Found { id, document } = service.submissions.submit(&caller, request, options, held).await?.submission;
    Ok(CreateSubmissionResponse {
        action: "CreateSubmissionResponse",
        message: format!("Driver successfully submitted as {id}"),
        // That of the driver, so that a client sees what it got.
        server_spark_version: document.map_or_else(|_| own.to_string(), |submission| submission.spark_version),
        submission_id: id.to_string(),
        success: true,
        unknown_fields,
    })
}
