//! Reads what a driver says of its jobs and executors. A driver is code of users, so what is kept of an answer is bounded by what a summary has, and
//! not by the answer: a list is added up while it is read.

mod executors;

use std::{borrow::Cow, fmt, marker::PhantomData};

use chrono::{DateTime, NaiveDateTime, Utc};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, SeqAccess, Visitor},
};

pub(super) use executors::Executors;
pub use executors::{ExecutorPeak, ExecutorUse};

/// The most jobs, stages or executors of an answer.
const ELEMENTS: usize = 5000;
/// How many jobs and failed stages a summary names.
const JOBS: usize = 10;
const FAILURES: usize = 5;
/// The longest name and reason, in characters.
const NAME: usize = 200;
const REASON: usize = 2000;

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
    /// When the first job was submitted.
    pub first_job_at: Option<DateTime<Utc>>,
    /// What its executors used so far; `None` if it didn't say.
    pub executors: Option<ExecutorUse>,
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

/// A list of Spark's `JobData`, summed up.
#[derive(Debug)]
pub(super) struct Jobs(pub(super) Said);

/// The newest of a list of Spark's `StageData`.
#[derive(Debug)]
pub(super) struct FailedStages(pub(super) Vec<StageFailure>);

/// Spark's `JobData`, as far as it is used.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct JobData<'a> {
    job_id: u32,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow)]
    submission_time: Option<Cow<'a, str>>,
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
struct StageData<'a> {
    stage_id: u32,
    attempt_id: u32,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    failure_reason: Option<Cow<'a, str>>,
}

impl<'de> Deserialize<'de> for Jobs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut said = Said::default();
        let mut latest = Newest::new(JOBS);
        each::<D, JobData<'de>>(deserializer, |job| {
            add(&mut said, &job);
            if job.job_id == 0 {
                said.first_job_at = job.submission_time.as_deref().and_then(moment);
            }
            latest.keep(job.job_id, || Job {
                id: job.job_id.into(),
                name: cut(&job.name, NAME),
                status: cut(&job.status, NAME),
                tasks: job.num_tasks.into(),
                completed_tasks: job.num_completed_tasks.into(),
            });
        })?;
        said.latest = latest.into_items();
        Ok(Self(said))
    }
}

impl<'de> Deserialize<'de> for FailedStages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut newest = Newest::new(FAILURES);
        each::<D, StageData<'de>>(deserializer, |stage| {
            newest.keep((stage.stage_id, stage.attempt_id), || StageFailure {
                stage: stage.stage_id.into(),
                attempt: stage.attempt_id.into(),
                name: cut(&stage.name, NAME),
                reason: cut(stage.failure_reason.as_deref().unwrap_or_default(), REASON),
            });
        })?;
        Ok(Self(newest.into_items()))
    }
}

/// Reads the items of a list one after the other. None is kept.
fn each<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D, take: impl FnMut(T)) -> Result<(), D::Error> {
    struct Each<T, F>(F, PhantomData<T>);
    impl<'de, T: Deserialize<'de>, F: FnMut(T)> Visitor<'de> for Each<T, F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {ELEMENTS} items")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
            let mut count = 0;
            while let Some(item) = items.next_element()? {
                count += 1;
                if count > ELEMENTS {
                    return Err(A::Error::invalid_length(count, &self));
                }
                self.0(item);
            }
            Ok(())
        }
    }
    deserializer.deserialize_seq(Each(take, PhantomData))
}

/// The items with the greatest keys, the greatest first.
struct Newest<K, T> {
    most: usize,
    kept: Vec<(K, T)>,
}

impl<K: Ord, T> Newest<K, T> {
    fn new(most: usize) -> Self {
        Self { most, kept: Vec::with_capacity(most + 1) }
    }

    /// Keeps an item if it is among them.
    fn keep(&mut self, key: K, item: impl FnOnce() -> T) {
        let at = self.kept.partition_point(|(other, _)| *other >= key);
        if at < self.most {
            self.kept.insert(at, (key, item()));
            self.kept.truncate(self.most);
        }
    }

    fn into_items(self) -> Vec<T> {
        self.kept.into_iter().map(|(_, item)| item).collect()
    }
}

fn add(said: &mut Said, job: &JobData<'_>) {
    match &*job.status {
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

/// Reads a time as Spark's REST API writes it: `2026-01-02T03:04:05.678GMT`.
fn moment(text: &str) -> Option<DateTime<Utc>> {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.fGMT").ok().map(|time| time.and_utc())
}

/// Returns the beginning of a driver's text, without characters that a database refuses or a terminal obeys.
fn cut(text: &str, longest: usize) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control()).take(longest).collect()
}

#[cfg(test)]
mod tests {
    use allocation_counter::measure;
    use serde_json::json;

    use super::*;

    fn jobs(text: &str) -> Option<Said> {
        serde_json::from_str(text).ok().map(|Jobs(said)| said)
    }

    #[test]
    fn jobs_are_summed_up_and_the_newest_are_named() {
        let job = |id: u32, status: &str| {
            json!({"jobId": id, "name": format!("count at job.py:{id}"), "status": status, "numTasks": 4, "numCompletedTasks": 3,
                   "submissionTime": format!("2026-01-02T03:04:{:02}.678GMT", id + 5), "numFailedTasks": 1, "numActiveStages": 1, "numFailedStages": 2, "stageIds": [id], "killedTasksSummary": {}})
        };
        // Spark lists the newest first, and promises nothing.
        let order = [3, 7, 0, 11, 1, 2, 10, 4, 5, 9, 6, 8];
        let all = order.map(|id| job(id, ["SUCCEEDED", "FAILED", "RUNNING", "UNKNOWN"][id as usize % 4]));
        let said = jobs(&json!(all).to_string()).unwrap();
        assert_eq!(said.first_job_at, Some("2026-01-02T03:04:05.678Z".parse().unwrap()));
        assert_eq!(jobs(&json!([job(1, "RUNNING")]).to_string()).unwrap().first_job_at, None, "it is forgotten");
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
        let FailedStages(failures) = serde_json::from_value(stages).unwrap();
        assert_eq!((failures.len(), failures[0].stage), (FAILURES, 8));
        assert!(failures[0].reason.starts_with("ab[31m\né") && failures[0].reason.chars().count() == REASON);
        assert_eq!(failures[0].name.chars().count(), NAME);
        for wrong in [r#"[{"jobId": -1}]"#, r#"[{"numTasks": 1e30}]"#, r#"{"jobs": []}"#, r#"[{"name": 1}]"#] {
            assert_eq!(jobs(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn memory_does_not_grow_with_the_answer_of_a_driver() {
        let empty = format!("[{}{{}}]", "{},".repeat(1_400_000));
        let job = r#"{"jobId": 7, "name": "a \"name\" with escapes", "stageIds": [1, 2, 3]}"#;
        let full = format!("[{}]", vec![job; ELEMENTS].join(","));
        for (text, is_taken) in [(empty, false), (full, true)] {
            let mut said = None;
            let used = measure(|| said = jobs(&text));
            assert_eq!(said.is_some(), is_taken);
            assert!(used.bytes_max < 64 << 10, "{used:?}");
        }
    }
}
