//! The last that a driver said of its jobs and stages, by Spark's REST API
//! (<https://spark.apache.org/docs/latest/monitoring.html#rest-api>). It is kept when the driver ends, and its UI with it.
//!
//! All of it is best effort. Drivers are asked rarely and few at a time, by whichever replica; nothing waits for an answer.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};
use http::{Request, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::SparkUi;
use crate::{
    service::{
        error::{Error, error_chain},
        session::Session,
    },
    store::AskedDriver,
    submission::SubmissionId,
};

/// Pause between two rounds.
const ROUND: Duration = Duration::from_secs(5);
/// The most drivers of one round, and how many are asked at once.
const DRIVERS: u32 = 32;
const AT_ONCE: usize = 8;
/// How long a driver may take to answer, in all.
const ANSWER: Duration = Duration::from_secs(10);
/// The largest answer. A driver keeps a thousand jobs (`spark.ui.retainedJobs`), of some 600 bytes each.
const LARGEST: usize = 4 << 20;
/// How many jobs and failed stages a summary names.
const JOBS: usize = 10;
const FAILURES: usize = 5;
/// The longest name and reason, in characters.
const NAME: usize = 200;
const REASON: usize = 2000;

/// What a driver said last.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The attempt whose driver said it.
    pub attempt: i32,
    pub read_at: DateTime<Utc>,
    pub said: Said,
}

/// What a driver said, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Said {
    pub jobs: JobCounts,
    pub stages: StageCounts,
    pub tasks: TaskCounts,
    /// The newest jobs, the newest first.
    pub latest: Vec<Job>,
    /// The newest failed stages, the newest first.
    pub failures: Vec<StageFailure>,
}

/// Jobs by state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobCounts {
    pub running: u64,
    pub succeeded: u64,
    pub failed: u64,
}

/// Stages of these jobs by state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StageCounts {
    pub active: u64,
    pub completed: u64,
    pub skipped: u64,
    pub failed: u64,
}

/// Tasks of these jobs by state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCounts {
    pub active: u64,
    pub completed: u64,
    pub failed: u64,
    pub killed: u64,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    pub id: u64,
    pub name: String,
    /// `RUNNING`, `SUCCEEDED`, `FAILED` or `UNKNOWN`.
    pub status: String,
    pub tasks: u64,
    pub completed_tasks: u64,
}

/// A stage that failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageFailure {
    pub stage: u64,
    /// The stage's own attempt, from 0.
    pub attempt: u64,
    pub name: String,
    pub reason: String,
}

/// Spark's `JobData`, as far as it is used.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobData {
    job_id: u32,
    name: String,
    status: String,
    num_tasks: u32,
    num_active_tasks: u32,
    num_completed_tasks: u32,
    num_failed_tasks: u32,
    num_killed_tasks: u32,
    num_active_stages: u32,
    num_completed_stages: u32,
    num_skipped_stages: u32,
    num_failed_stages: u32,
}

/// Spark's `StageData`, as far as it is used.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StageData {
    stage_id: u32,
    attempt_id: u32,
    name: String,
    failure_reason: Option<String>,
}

impl SparkUi {
    /// Returns what the driver of a submission said last, if the caller may read it.
    pub async fn summary(&self, caller: &Session, id: &SubmissionId) -> Result<Option<Summary>, Error> {
        let row = self.store.scoped(&caller.readable()).spark_summary(id).await?;
        // One that another release wrote may not be readable.
        Ok(row.and_then(|row| {
            let said = serde_json::from_value(row.summary).ok()?;
            Some(Summary { attempt: row.attempt, read_at: row.read_at, said })
        }))
    }

    /// Asks drivers for their jobs until `stop`.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let Some(period) = self.settings.summary_period else { return stop.cancelled().await };
        let rounds = async {
            loop {
                sleep(ROUND).await;
                if let Err(error) = self.ask_drivers(period).await {
                    tracing::warn!(retry_in = ?ROUND, "no driver was asked for its jobs: {}", error_chain(&error));
                }
            }
        };
        stop.run_until_cancelled(rounds).await;
    }

    /// Asks the drivers whose turn it is for their jobs, and records what they said. Returns how many were asked.
    ///
    /// # Errors
    /// The database doesn't answer. A driver that doesn't is asked again later.
    pub async fn ask_drivers(&self, period: Duration) -> Result<usize, Error> {
        let drivers = self.store.drivers_to_ask(period, DRIVERS).await?;
        let asked = drivers.len();
        stream::iter(drivers)
            .for_each_concurrent(AT_ONCE, async |driver| {
                let Ok(Some(said)) = timeout(ANSWER, self.asked(&driver)).await else { return };
                let Ok(said) = serde_json::to_value(&said) else { return };
                if let Err(error) = self.store.write_spark_summary(&driver.id, driver.attempt, &said).await {
                    tracing::debug!(submission = %driver.id, "a summary wasn't recorded: {}", error_chain(&error));
                }
            })
            .await;
        Ok(asked)
    }

    /// Returns what a driver says; `None` if it says nothing that can be used, as before its `SparkContext` has started.
    async fn asked(&self, driver: &AskedDriver) -> Option<Said> {
        let app_id = utf8_percent_encode(&driver.names.app_id, NON_ALPHANUMERIC).to_string().replace("%2D", "-");
        let jobs: Vec<JobData> = self.read(driver, &format!("/api/v1/applications/{app_id}/jobs")).await?;
        let mut said = of_jobs(jobs);
        if said.stages.failed > 0 {
            let stages = format!("/api/v1/applications/{app_id}/stages?status=failed");
            said.failures = of_stages(self.read(driver, &stages).await.unwrap_or_default());
        }
        Some(said)
    }

    async fn read<T: DeserializeOwned>(&self, driver: &AskedDriver, path: &str) -> Option<T> {
        let AskedDriver { namespace, names, pod_uid, .. } = driver;
        let address = self.address(namespace, &names.driver_pod, pod_uid).await.ok()??;
        let request = Request::get(path).header(header::ACCEPT, "application/json").body(Bytes::new()).ok()?;
        let response = self.cluster.ask_driver(address, request).await.ok()?;
        let (parts, mut body) = response.into_parts();
        if parts.status != StatusCode::OK {
            return None;
        }
        let mut text = BytesMut::new();
        while let Some(part) = body.next().await {
            text.extend_from_slice(&part.ok()?);
            if text.len() > LARGEST {
                return None;
            }
        }
        serde_json::from_slice(&text).ok()
    }
}

fn of_jobs(mut jobs: Vec<JobData>) -> Said {
    let mut said = Said::default();
    for job in &jobs {
        match job.status.as_str() {
            "RUNNING" => said.jobs.running += 1,
            "SUCCEEDED" => said.jobs.succeeded += 1,
            "FAILED" => said.jobs.failed += 1,
            _ => {}
        }
        let StageCounts { active, completed, skipped, failed } = &mut said.stages;
        *active += u64::from(job.num_active_stages);
        *completed += u64::from(job.num_completed_stages);
        *skipped += u64::from(job.num_skipped_stages);
        *failed += u64::from(job.num_failed_stages);
        let TaskCounts { active, completed, failed, killed } = &mut said.tasks;
        *active += u64::from(job.num_active_tasks);
        *completed += u64::from(job.num_completed_tasks);
        *failed += u64::from(job.num_failed_tasks);
        *killed += u64::from(job.num_killed_tasks);
    }
    jobs.sort_by_key(|job| std::cmp::Reverse(job.job_id));
    let job = |job: JobData| Job {
        id: job.job_id.into(),
        name: cut(&job.name, NAME),
        status: cut(&job.status, NAME),
        tasks: job.num_tasks.into(),
        completed_tasks: job.num_completed_tasks.into(),
    };
    said.latest = jobs.into_iter().take(JOBS).map(job).collect();
    said
}

fn of_stages(mut stages: Vec<StageData>) -> Vec<StageFailure> {
    stages.sort_by_key(|stage| std::cmp::Reverse((stage.stage_id, stage.attempt_id)));
    let failure = |stage: StageData| StageFailure {
        stage: stage.stage_id.into(),
        attempt: stage.attempt_id.into(),
        name: cut(&stage.name, NAME),
        reason: cut(&stage.failure_reason.unwrap_or_default(), REASON),
    };
    stages.into_iter().take(FAILURES).map(failure).collect()
}

/// Returns the beginning of a driver's text, without characters that a database refuses or a terminal obeys.
fn cut(text: &str, longest: usize) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).take(longest).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn jobs_are_summed_up_and_the_newest_are_named() {
        let job = |id: u32, status: &str| {
            json!({"jobId": id, "name": format!("count at job.py:{id}"), "status": status, "numTasks": 4, "numCompletedTasks": 3,
                   "numFailedTasks": 1, "numActiveStages": 1, "numFailedStages": 2, "stageIds": [id], "killedTasksSummary": {}})
        };
        let jobs: Vec<_> =
            (0..12).map(|id| job(id, ["SUCCEEDED", "FAILED", "RUNNING", "UNKNOWN"][id as usize % 4])).collect();
        let said = of_jobs(serde_json::from_value(json!(jobs)).unwrap());
        assert_eq!(said.jobs, JobCounts { running: 3, succeeded: 3, failed: 3 });
        assert_eq!(said.tasks, TaskCounts { completed: 36, failed: 12, ..TaskCounts::default() });
        assert_eq!((said.stages.active, said.stages.failed), (12, 24));
        let ids: Vec<_> = said.latest.iter().map(|job| job.id).collect();
        assert_eq!(ids, [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]);
    }

    #[test]
    fn a_hostile_driver_says_no_more_than_fits() {
        let text = format!("a\0b\u{1b}[31m\n{}", "é".repeat(5000));
        let stages =
            json!((0..9).map(|id| json!({"stageId": id, "name": text, "failureReason": text})).collect::<Vec<_>>());
        let failures = of_stages(serde_json::from_value(stages).unwrap());
        assert_eq!((failures.len(), failures[0].stage), (FAILURES, 8));
        assert!(failures[0].reason.starts_with("ab[31m\né") && failures[0].reason.chars().count() == REASON);
        assert_eq!(failures[0].name.chars().count(), NAME);
        for wrong in [json!([{"jobId": -1}]), json!([{"numTasks": 1e30}]), json!({"jobs": []}), json!([{"name": 1}])] {
            assert!(serde_json::from_value::<Vec<JobData>>(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
