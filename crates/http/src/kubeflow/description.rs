//! The bodies of requests and replies.

use serde::Serialize;
use utoipa::ToSchema;

/// An application of the operator. The templates are pods; they are the base of the driver's and the executors' pods.
#[derive(ToSchema)]
#[schema(as = KubeflowApplication, example = json!({
    "submission_id": "2f1c1f5e-0f5b-4f37-9d5e-3f0f3c7b7a11",
    "spark_submit_args": [
        "--class", "org.apache.spark.examples.SparkPi",
        "--conf", "spark.kubernetes.namespace=spark",
        "local:///opt/spark/examples/jars/spark-examples.jar", "5000"
    ]
}))]
#[expect(dead_code, reason = "only describes the body; `new::parse` reads it")]
pub(super) struct Application {
    /// The operator's id of the attempt. Requests with the same id get the same submission.
    submission_id: String,
    /// The arguments of spark-submit.
    #[schema(required = false)]
    spark_submit_args: Vec<String>,
    driver_pod_template: Option<serde_json::Value>,
    executor_pod_template: Option<serde_json::Value>,
}

/// The driver pod of an application.
#[derive(Serialize, ToSchema)]
#[schema(as = KubeflowSubmission)]
pub(super) struct Submitted {
    pub(super) submission_id: String,
    pub(super) app_name: String,
    pub(super) message: String,
    pub(super) submitted_at: String,
    pub(super) spark_app_id: String,
    pub(super) driver_pod_name: String,
    pub(super) driver_pod_uid: Option<String>,
    pub(super) namespace: String,
    /// A request with this id came before.
    pub(super) duplicate_submission: bool,
}

/// An error. The operator tries again after `INTERNAL_SERVER_ERROR` and `SUBMITTER_OVERLOADED`.
#[derive(Serialize, ToSchema)]
#[schema(as = KubeflowError)]
pub(super) struct Refused {
    /// The id of the request, if it could be read.
    pub(super) submission_id: String,
    pub(super) status: u16,
    pub(super) error_code: &'static str,
    pub(super) message: String,
    pub(super) timestamp: String,
}
