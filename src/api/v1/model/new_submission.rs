//! The body of a create request, as it is described; `request` reads it.

use std::collections::BTreeMap;

use utoipa::ToSchema;

/// What to run. Fields of Spark's `CreateSubmissionRequest` keep their names; all of them may be left out but what the
/// application needs.
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
#[expect(dead_code, reason = "describes the body to readers of the API; `request` is what reads it")]
pub(in crate::api) struct NewSubmission {
    /// The application's jar, Python or R file, as the driver reaches it.
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
    /// No other live submission of the namespace that asks for the same may have this name: 409 if one has.
    unique_name: Option<bool>,
    /// To be found by, in Kubernetes' syntax of labels; 32 at most.
    #[schema(required = false)]
    labels: BTreeMap<String, String>,
    /// It is killed if it isn't running so long after being queued.
    #[schema(minimum = 1)]
    start_timeout_seconds: Option<u64>,
    /// It is killed if it still runs so long after it started.
    #[schema(minimum = 1)]
    run_timeout_seconds: Option<u64>,
    /// From SIGTERM to SIGKILL, when it is killed.
    kill_grace_seconds: Option<u64>,
    max_retries: Option<super::MaxRetries>,
    /// The user whom the application acts as: `--proxy-user`.
    proxy_user: Option<String>,
    /// What the driver's pod begins with: a pod as an object, the same as YAML text, or the name of a file that the
    /// gateway's operator gave.
    driver_pod_template: Option<serde_json::Value>,
    /// What executors' pods begin with, in the same three forms.
    executor_pod_template: Option<serde_json::Value>,
    /// Taken for compatibility with Spark's protocol; it decides nothing.
    client_spark_version: Option<String>,
}
