//! Jobs as the API represents them.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use crate::v1::submissions::{document::State, startup::StepWord};
use sparkgate_service::{self as service, FailureReason};
use sparkgate_submission::SubmissionId;

/// A job: all submissions of one name in one tenant. Its figures are those of the runs in `runs`.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::v1) struct Job {
    #[schema(example = "nightly-etl")]
    name: String,
    #[schema(example = "analytics")]
    tenant: String,
    /// The share of runs that succeeded, of those that ended without being killed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 0.9)]
    success_rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_success: Option<RunEnd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<RunEnd>,
    /// The most frequent failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    usual_failure: Option<UsualFailure>,
    /// The median duration of successful runs, from the start of the driver to its end, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 312.5)]
    median_seconds: Option<f64>,
    /// The duration that nine of ten successful runs don't exceed.
    #[serde(skip_serializing_if = "Option::is_none")]
    p90_seconds: Option<f64>,
    /// When the next run is expected. Only if four of five times between the runs are within a tenth, or a minute, of their median, and there
    /// are at least five.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_expected_at: Option<DateTime<Utc>>,
    /// The last runs, the newest first: 10 in the list of jobs, and 100 in the response to `GET /v1/jobs/{job}`.
    runs: Vec<Run>,
}

/// When a run ended.
#[derive(Debug, Serialize, ToSchema)]
struct RunEnd {
    #[schema(example = "driver-20260102030405-0000")]
    id: String,
    at: DateTime<Utc>,
}

/// The most frequent failure of a job.
#[derive(Debug, Serialize, ToSchema)]
struct UsualFailure {
    #[schema(value_type = String, example = "APPLICATION_ERROR")]
    code: &'static str,
    count: usize,
    /// The message of the newest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// A run of a job.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Run {
    #[schema(example = "driver-20260102030405-0000")]
    id: String,
    state: State,
    attempt: i32,
    /// The caller that submitted it.
    principal: String,
    created_at: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<DateTime<Utc>>,
    /// From the start of the driver to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<RunFailure>,
}

/// Why a run failed.
#[derive(Debug, Serialize, ToSchema)]
struct RunFailure {
    #[schema(value_type = String, example = "APPLICATION_ERROR")]
    code: &'static str,
    message: String,
}

/// A job with what its runs tell about the next one.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::v1) struct JobDetails {
    #[serde(flatten)]
    job: Job,
    /// What has changed since the job last succeeded. Only if its newest run that ended failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_since_success: Option<ChangedSince>,
    /// How long the starts of its last runs took.
    startup: JobStartup,
    /// What its successful runs advise about its size. It is never carried out.
    advice: Vec<Advice>,
}

/// How long the starts of the last 100 runs of a job took.
#[derive(Debug, Serialize, ToSchema)]
struct JobStartup {
    /// The runs whose driver started. Of a run with several attempts, the last one counts.
    #[schema(example = 96)]
    runs: usize,
    /// Each step that is known of one run at least. The pause before a retry counts nowhere.
    steps: Vec<JobStartupStep>,
}

/// How long a step of a start takes, since the step before. Times of Kubernetes are accurate to a second.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct JobStartupStep {
    step: StepWord,
    /// The runs of which it is known.
    #[schema(example = 96)]
    runs: usize,
    #[schema(example = 4.0)]
    median_seconds: f64,
    /// The time that nine of ten runs don't exceed.
    #[schema(example = 11.0)]
    p90_seconds: f64,
}

/// What has changed since a job last succeeded.
#[derive(Debug, Serialize, ToSchema)]
struct ChangedSince {
    success: String,
    failure: String,
    /// The parts of the request that differ; empty if both requests are the same.
    changes: Vec<Change>,
}

/// A part of the request that has changed.
#[derive(Debug, Serialize, ToSchema)]
struct Change {
    #[schema(example = "spark.executor.memory")]
    part: String,
    /// Its value in the run that succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<String>,
    /// Its value in the run that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

/// Advice of size, with its evidence.
#[derive(Debug, Serialize, ToSchema)]
struct Advice {
    /// The property that would change.
    #[schema(example = "spark.executor.memory")]
    property: &'static str,
    /// What it could be; absent if the runs don't tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "2816m")]
    suggested: Option<String>,
    reason: String,
    /// The ids of the runs that show it.
    runs: Vec<String>,
}

impl From<service::Job> for Job {
    fn from(job: service::Job) -> Self {
        let service::Job { tenant, name, runs, history } = job;
        let success_rate = history.success_rate();
        let end = |end: Option<(SubmissionId, DateTime<Utc>)>| end.map(|(id, at)| RunEnd { id: id.to_string(), at });
        Self {
            name,
            tenant,
            success_rate,
            last_success: end(history.last_success),
            last_failure: end(history.last_failure),
            usual_failure: history.usual_failure.map(|usual| UsualFailure {
                code: usual.code.as_str(),
                count: usual.count,
                message: usual.message,
            }),
            median_seconds: history.median_seconds,
            p90_seconds: history.p90_seconds,
            next_expected_at: history.next_expected_at,
            runs: runs.into_iter().map(Run::from).collect(),
        }
    }
}

impl From<service::JobRun> for Run {
    fn from(run: service::JobRun) -> Self {
        let (reason, message) = (run.reason.as_deref(), run.message.as_deref());
        let why = FailureReason::ended(run.state, run.exit_code, reason, message);
        Self {
            seconds: run.seconds(),
            state: run.state.into(),
            attempt: run.attempt,
            failure: why.map(|why| RunFailure { code: why.code.as_str(), message: why.message }),
            id: run.id.to_string(),
            principal: run.principal,
            created_at: run.created_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
        }
    }
}

impl From<&service::StepDuration> for JobStartupStep {
    fn from(of: &service::StepDuration) -> Self {
        let service::StepDuration { step, runs, median_seconds, p90_seconds } = *of;
        Self { step: step.into(), runs, median_seconds, p90_seconds }
    }
}

impl JobDetails {
    pub(in crate::v1) fn new(
        job: service::Job,
        changed: Option<service::ChangedSince>,
        starts: &service::JobStarts,
        advice: Vec<service::Advice>,
    ) -> Self {
        let changed = changed.map(|service::ChangedSince { success, failure, differences }| ChangedSince {
            success: success.to_string(),
            failure: failure.to_string(),
            changes: differences
                .into_iter()
                .map(|one| Change { part: one.part, before: one.here, after: one.there })
                .collect(),
        });
        let advice = advice.into_iter().map(|service::Advice { property, suggested, reason, runs }| Advice {
            property,
            suggested,
            reason,
            runs,
        });
        let startup = JobStartup { runs: starts.runs, steps: starts.steps.iter().map(JobStartupStep::from).collect() };
        Self { job: job.into(), changed_since_success: changed, startup, advice: advice.collect() }
    }
}
