//! What a driver said last of its jobs and stages, as the API represents it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use sparkgate_service as service;

/// What the driver said last of its jobs and stages, by Spark's own REST API. It may be older than the end of the driver.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::v1) struct SparkSummary {
    read_at: DateTime<Utc>,
    /// The attempt whose driver said it.
    #[schema(example = 1)]
    attempt: i32,
    jobs: SparkJobCounts,
    stages: SparkStageCounts,
    tasks: SparkTaskCounts,
    /// The newest jobs, the newest first.
    latest_jobs: Vec<SparkJob>,
    /// The newest failed stages, the newest first.
    failed_stages: Vec<FailedStage>,
    /// What its executors used so far, those that ended among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    executors: Option<SparkExecutors>,
}

/// What executors used. Memory is in bytes, and the heap in use has garbage in it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SparkExecutors {
    /// How many there were.
    count: u64,
    /// The most heap that one of them had in use.
    peak_heap_bytes: u64,
    /// The same of the driver.
    driver_peak_heap_bytes: u64,
    /// The share of the time of their cores in which tasks ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 0.62)]
    busy: Option<f64>,
    /// The share of the time of tasks that the garbage collection took.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 0.03)]
    garbage_collection: Option<f64>,
    /// Those with the most heap in use.
    largest: Vec<ExecutorPeak>,
}

/// The most that an executor used.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ExecutorPeak {
    id: String,
    peak_heap_bytes: u64,
    /// Resident memory of its JVM and its Python processes, if `spark.executor.processTreeMetrics.enabled` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_resident_bytes: Option<u64>,
    tasks: u64,
    failed_tasks: u64,
}

impl From<service::ExecutorUse> for SparkExecutors {
    fn from(used: service::ExecutorUse) -> Self {
        let largest = used.largest.iter().map(|one| ExecutorPeak {
            id: one.id.clone(),
            peak_heap_bytes: one.heap,
            peak_resident_bytes: (one.resident > 0).then_some(one.resident),
            tasks: one.tasks,
            failed_tasks: one.failed_tasks,
        });
        Self {
            count: used.count,
            peak_heap_bytes: used.peak_heap,
            driver_peak_heap_bytes: used.driver_peak_heap,
            busy: used.busy(),
            garbage_collection: used.garbage_collection(),
            largest: largest.collect(),
        }
    }
}

/// Number of jobs in each state.
#[derive(Debug, Serialize, ToSchema)]
struct SparkJobCounts {
    running: u64,
    succeeded: u64,
    failed: u64,
}

/// Number of stages in each state.
#[derive(Debug, Serialize, ToSchema)]
struct SparkStageCounts {
    active: u64,
    completed: u64,
    skipped: u64,
    failed: u64,
}

/// Number of tasks in each state.
#[derive(Debug, Serialize, ToSchema)]
struct SparkTaskCounts {
    active: u64,
    completed: u64,
    failed: u64,
    killed: u64,
}

/// A job of a driver.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SparkJob {
    id: u64,
    #[schema(example = "count at job.py:7")]
    name: String,
    /// `RUNNING`, `SUCCEEDED`, `FAILED` or `UNKNOWN`.
    #[schema(example = "RUNNING")]
    status: String,
    tasks: u64,
    completed_tasks: u64,
}

/// A stage that failed.
#[derive(Debug, Serialize, ToSchema)]
struct FailedStage {
    stage: u64,
    /// The stage's own attempt, from 0.
    attempt: u64,
    name: String,
    /// Why it failed, as Spark says it.
    reason: String,
}

impl From<service::Summary> for SparkSummary {
    fn from(summary: service::Summary) -> Self {
        let service::Summary { attempt, read_at, said } = summary;
        let (jobs, stages, tasks) = (said.jobs, said.stages, said.tasks);
        let latest = said.latest.into_iter().map(|job| SparkJob {
            id: job.id,
            name: job.name,
            status: job.status,
            tasks: job.tasks,
            completed_tasks: job.completed_tasks,
        });
        let failed = said.failures.into_iter().map(|failure| FailedStage {
            stage: failure.stage,
            attempt: failure.attempt,
            name: failure.name,
            reason: failure.reason,
        });
        Self {
            read_at,
            attempt,
            jobs: SparkJobCounts { running: jobs.running, succeeded: jobs.succeeded, failed: jobs.failed },
            stages: SparkStageCounts {
                active: stages.active,
                completed: stages.completed,
                skipped: stages.skipped,
                failed: stages.failed,
            },
            tasks: SparkTaskCounts {
                active: tasks.active,
                completed: tasks.completed,
                failed: tasks.failed,
                killed: tasks.killed,
            },
            latest_jobs: latest.collect(),
            failed_stages: failed.collect(),
            executors: said.executors.map(Into::into),
        }
    }
}
