//! The description of a create request's body. `request` reads the body.

use std::collections::BTreeMap;

use utoipa::ToSchema;

/// The application to run. Fields of Spark's `CreateSubmissionRequest` keep their names. Every field is optional, except
/// those that the application needs.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase", as = NewSubmission, example = json!({
    "name": "Pi",
    "appResource": "local:///opt/spark/examples/jars/spark-examples.jar",
    "mainClass": "org.apache.spark.examples.SparkPi",
    "appArgs": ["100"],
    "sparkProperties": {"spark.executor.instances": "2"},
    "labels": {"team": "data"},
    "runTimeoutSeconds": 3600
}))]
#[expect(dead_code, reason = "only describes the body; `request` reads it")]
pub(in crate::api) struct NewSubmission {
    /// The application's jar, Python or R file: a URI that the driver can read.
    app_resource: Option<String>,
    main_class: Option<String>,
    #[schema(required = false)]
    app_args: Vec<String>,
    #[schema(required = false)]
    spark_properties: BTreeMap<String, String>,
    #[schema(required = false)]
    environment_variables: BTreeMap<String, String>,
    /// `spark.app.name`.
    name: Option<String>,
    /// Refuse the request with 409 if a live submission of the same namespace that also set `uniqueName` has this name.
    unique_name: Option<bool>,
    /// Labels to filter submissions by, in Kubernetes' syntax; at most 32.
    #[schema(required = false)]
    labels: BTreeMap<String, String>,
    /// Kill the submission if it isn't running this long after it was queued.
    #[schema(minimum = 1)]
    start_timeout_seconds: Option<u64>,
    /// Kill the submission if it is still running this long after it started.
    #[schema(minimum = 1)]
    run_timeout_seconds: Option<u64>,
    /// Time from SIGTERM to SIGKILL when the submission is killed.
    kill_grace_seconds: Option<u64>,
    max_retries: Option<super::MaxRetries>,
    /// The user that the application impersonates: `--proxy-user`.
    proxy_user: Option<String>,
    /// The template of the driver's pod: a pod as a JSON object, a pod as a string of YAML, or the name of a template
    /// that the gateway's operator provides.
    driver_pod_template: Option<serde_json::Value>,
    /// The template of executors' pods, in the same three forms.
    executor_pod_template: Option<serde_json::Value>,
    /// Accepted for compatibility with Spark's protocol; it has no effect.
    client_spark_version: Option<String>,
}
