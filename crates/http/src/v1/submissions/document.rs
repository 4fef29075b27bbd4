//! A submission as the API represents it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, Schema},
};

use super::{
    failure::{Why, word},
    late::Late,
    spark::SparkSummary,
    startup::StartupStep,
};
use crate::v1::{launch_changes::LaunchChange, queues::document::QueuePlace, usage::document::SubmissionUsage};
use sparkgate_service as service;
use sparkgate_submission as submission;

/// A submission with its state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::v1) struct Submission {
    #[schema(example = "driver-20260102030405-0000")]
    pub(in crate::v1) id: String,
    /// `spark.app.name`
    #[schema(example = "Pi")]
    name: String,
    state: State,
    /// The user that it is recorded under: the proxy user or `SPARK_USER` of the request, else the name of the caller; without
    /// authentication the gateway's own user.
    owner: String,
    /// The tenant that it belongs to; `default` without tenants.
    #[schema(example = "analytics")]
    tenant: String,
    /// The caller that submitted it, as the gateway authenticated it.
    #[schema(example = "corp:alice")]
    principal: String,
    /// The name of the API key that it was submitted with. Only in lists and in the response to `GET /v1/submissions/{id}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "airflow")]
    principal_name: Option<String>,
    #[schema(example = "spark")]
    namespace: String,
    /// The client's own id, unique in the tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<String>,
    labels: BTreeMap<String, String>,
    #[schema(example = "4.3.0")]
    spark_version: String,
    /// `spark.app.id` of the current attempt.
    application_id: String,
    /// The number of the current attempt, from 1.
    #[schema(example = 1)]
    attempt: i32,
    created_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<DateTime<Utc>>,
    driver: Driver,
    /// Number of executors in each state, over all attempts.
    executors: ExecutorCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<Limits>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<MaxRetries>,
    /// Exit code of the driver's container, once it has ended and the code is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// Why the submission isn't running yet, if the reason is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<Why>,
    /// Why the submission failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::v1) failure: Option<Why>,
    /// The queue that admits it, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "nightly")]
    queue: Option<String>,
    /// Its priority among the submissions of its tenant in that queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<i32>,
    /// Where it stands in its queue, or who holds it. Only in the response to `GET /v1/submissions/{id}`, and only while it waits in a queue
    /// or is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::v1) queue_place: Option<QueuePlace>,
    /// What the launch of the current attempt changed in its objects: why the driver isn't what the request says. Only in the response to
    /// `GET /v1/submissions/{id}`, and only if something changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(in crate::v1) launch_changes: Vec<LaunchChange>,
    /// The steps of the current attempt's start that have happened, in order. Only in the response to `GET /v1/submissions/{id}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub(in crate::v1) startup: Vec<StartupStep>,
    /// The current attempt takes longer than expected. Only in the response to `GET /v1/submissions/{id}`, and only if that was reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::v1) late: Option<Late>,
    /// What the pods of the submission used. Only in the response to `GET /v1/submissions/{id}`, and only if they reserved
    /// something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::v1) usage: Option<SubmissionUsage>,
    /// Where the Spark UI is: a path of this gateway until the submission has ended, and then a URL of the operator's History Server. Only
    /// in the response to `GET /v1/submissions/{id}`, and only if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "/v1/submissions/driver-20260102030405-0000/ui/")]
    pub(in crate::v1) spark_ui: Option<String>,
    /// What the driver said last of its jobs and stages. Only in the response to `GET /v1/submissions/{id}`, and only if the driver was
    /// asked and answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::v1) spark: Option<SparkSummary>,
    /// Properties that are probably misspelt, each with the one that was probably meant. Only in the response to a request that
    /// submits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, example = json!(["spark.executor.instnces: Spark has no such property; did you mean spark.executor.instances?"]))]
    pub(in crate::v1) warnings: Vec<String>,
}

/// The state of a submission or an attempt.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub(in crate::v1) struct State(&'static str);

impl PartialSchema for State {
    fn schema() -> RefOr<Schema> {
        let about = "`QUEUED → LAUNCHING → PENDING → RUNNING →` one of `FINISHED`, `FAILED`, `KILLED`, `ERROR`, `LOST`; \
                     `KILLING` precedes `KILLED`.";
        word(submission::State::ALL.into_iter().map(submission::State::as_str), about)
    }
}

impl ToSchema for State {
    fn name() -> std::borrow::Cow<'static, str> {
        "SubmissionState".into()
    }
}

/// The location of the driver.
#[derive(Debug, Serialize, ToSchema)]
struct Driver {
    /// The pod's name.
    pod: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ExecutorCounts {
    pending: i32,
    running: i32,
    succeeded: i32,
    failed: i32,
    deleted: i32,
}

/// Time limits in seconds, after which the submission is killed. Limits that aren't set are absent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::v1) struct Limits {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::v1) start_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::v1) run_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::v1) kill_grace_seconds: Option<u64>,
}

/// The most retries after failures, by kind of failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(in crate::v1) struct MaxRetries {
    /// Retries after failures that the application didn't cause.
    #[schema(required = false, example = 2)]
    pub(in crate::v1) infrastructure: u32,
    /// Retries after failures of the application.
    #[schema(required = false, example = 0)]
    pub(in crate::v1) application: u32,
    /// Retries after the cluster had no room for the driver within its start timeout.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false, example = 3)]
    pub(in crate::v1) capacity: u32,
    /// Retries after a quota had no room for the driver.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false, example = 3)]
    pub(in crate::v1) quota: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Limits {
    /// Returns the limits, or `None` if no limit is set.
    pub(in crate::v1) fn any(self) -> Option<Self> {
        let none = Self { start_seconds: None, run_seconds: None, kill_grace_seconds: None };
        (self != none).then_some(self)
    }
}

impl MaxRetries {
    pub(super) fn of(row: &service::Submission) -> Self {
        Self {
            infrastructure: row.max_retries_infrastructure.unsigned_abs(),
            application: row.max_retries_application.unsigned_abs(),
            capacity: row.max_retries_capacity.unsigned_abs(),
            quota: row.max_retries_quota.unsigned_abs(),
        }
    }

    /// Returns the budgets, or `None` if there are none.
    pub(in crate::v1) fn any(self) -> Option<Self> {
        let Self { infrastructure, application, capacity, quota } = self;
        [infrastructure, application, capacity, quota].into_iter().any(|most| most > 0).then_some(self)
    }
}

impl From<submission::State> for State {
    fn from(state: submission::State) -> Self {
        Self(state.as_str())
    }
}

impl From<service::Submission> for Submission {
    fn from(row: service::Submission) -> Self {
        let why = service::FailureReason::of(&row);
        Self::with(row, why)
    }
}

impl Submission {
    /// Adds the name of the API key, if it was submitted with one.
    pub(in crate::v1) fn named(mut self, names: &service::KeyNames) -> Self {
        self.principal_name = names.of(&self.principal).map(str::to_owned);
        self
    }

    /// Creates the document with a `why` that has all details, which lists leave out.
    pub(in crate::v1) fn with(row: service::Submission, why: Option<service::FailureReason>) -> Self {
        let why = why.map(Why::from);
        let (waiting, failure) = if row.state.is_terminal() { (None, why) } else { (why, None) };
        let seconds = |time: Option<i32>| time.map(|time| u64::from(time.unsigned_abs()));
        let limits = Limits {
            start_seconds: seconds(row.start_timeout),
            run_seconds: seconds(row.run_timeout),
            kill_grace_seconds: seconds(row.kill_grace),
        };
        let retries = MaxRetries::of(&row);
        Self {
            id: row.id.to_string(),
            name: row.name,
            state: row.state.into(),
            owner: row.owner,
            tenant: row.tenant,
            principal: row.principal,
            principal_name: None,
            namespace: row.namespace,
            client_id: row.client_id,
            labels: row.labels,
            spark_version: row.spark_version,
            application_id: row.names.app_id,
            attempt: row.attempt,
            created_at: row.created_at,
            // Kubernetes truncates its times to whole seconds, and a start must not precede the creation.
            started_at: row.started_at.map(|at| at.max(row.created_at)),
            finished_at: row.finished_at,
            driver: Driver { pod: row.names.driver_pod, node: row.node, ip: row.pod_ip },
            executors: ExecutorCounts {
                pending: row.executors.pending,
                running: row.executors.running,
                succeeded: row.executors.succeeded,
                failed: row.executors.failed,
                deleted: row.executors.deleted,
            },
            limits: limits.any(),
            retries: retries.any(),
            exit_code: row.exit_code,
            waiting,
            failure,
            queue: row.queue,
            priority: row.priority,
            queue_place: None,
            launch_changes: Vec::new(),
            startup: Vec::new(),
            late: None,
            usage: None,
            spark_ui: None,
            spark: None,
            warnings: Vec::new(),
        }
    }
}
