//! Jobs: all runs of a name in a tenant. What a team asks in the morning: which failed, since when, and what has changed.

mod history;
mod starts;

use serde_json::Value;

use super::{
    Submissions,
    comparison::{Difference, differences},
};
use sparkgate_common::error::Error;
use sparkgate_store::{JobFilter, JobRun, JobRuns};
use sparkgate_submission::{State, SubmissionId};
use sparkgate_tenancy::session::Session;

pub use history::{JobHistory, UsualFailure};
pub use starts::{JobStarts, StepDuration};

/// How many runs of each job the list has.
const RUNS_IN_LIST: u32 = 10;
/// How many runs a job has.
const RUNS: u32 = 100;

/// A job with its last runs, and what they tell.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub tenant: String,
    pub name: String,
    /// The newest first.
    pub runs: Vec<JobRun>,
    pub history: JobHistory,
}

/// A page of the list of jobs, the latest run first.
#[derive(Debug, Clone, PartialEq)]
pub struct Jobs {
    pub items: Vec<Job>,
    /// There are more jobs after these.
    pub more: bool,
}

/// What has changed since a job last succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedSince {
    /// The last success.
    pub success: SubmissionId,
    /// The newest run, which failed.
    pub failure: SubmissionId,
    /// The parts of the request that differ; `here` is that of the success.
    pub differences: Vec<Difference>,
}

/// The answer to the question for a job.
#[derive(Debug, Clone, PartialEq)]
pub enum JobAnswer {
    /// No submission that the caller may see has this name.
    Unknown,
    /// Several tenants have it.
    Ambiguous(Vec<String>),
    Found(Box<Job>),
}

impl From<JobRuns> for Job {
    fn from(JobRuns { tenant, name, runs }: JobRuns) -> Self {
        let history = JobHistory::of(&runs);
        Self { tenant, name, runs, history }
    }
}

impl Submissions {
    /// Returns up to `limit` jobs that the caller may see, the latest run first, whose last run is before the number `before`, if one is
    /// given.
    ///
    /// # Errors
    /// The database doesn't answer.
    pub async fn jobs(
        &self,
        caller: &Session,
        filter: &JobFilter,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Jobs, Error> {
        let page = self.store.scoped(&caller.readable()).jobs(filter, before, limit, RUNS_IN_LIST).await?;
        Ok(Jobs { items: page.items.into_iter().map(Job::from).collect(), more: page.more })
    }

    /// Returns the job of this name.
    ///
    /// # Errors
    /// The database doesn't answer.
    pub async fn job(&self, caller: &Session, tenant: Option<&str>, name: &str) -> Result<JobAnswer, Error> {
        let mut found = match name.is_empty() {
            true => Vec::new(),
            false => self.store.scoped(&caller.readable()).job(tenant, name, RUNS).await?,
        };
        Ok(match (found.pop(), found) {
            (None, _) => JobAnswer::Unknown,
            (Some(job), others) if others.is_empty() => JobAnswer::Found(Box::new(job.into())),
            (Some(job), others) => {
                JobAnswer::Ambiguous(others.into_iter().chain([job]).map(|job| job.tenant).collect())
            }
        })
    }

    /// Returns how long the starts of a job's last runs took.
    ///
    /// # Errors
    /// The database doesn't answer.
    pub async fn job_starts(&self, caller: &Session, job: &Job) -> Result<JobStarts, Error> {
        let starts = self.store.scoped(&caller.readable()).job_starts(&job.tenant, &job.name, RUNS).await?;
        Ok(JobStarts::of(&starts))
    }

    /// Returns what has changed since a job last succeeded; `None` if its newest end isn't a failure, or it never succeeded.
    ///
    /// # Errors
    /// The database doesn't answer.
    pub async fn changed_since_success(&self, caller: &Session, job: &Job) -> Result<Option<ChangedSince>, Error> {
        let mut ended = job.runs.iter().filter(|run| run.state == State::Finished || run.state.is_failure());
        let Some(failure) = ended.next().filter(|run| run.state.is_failure()) else { return Ok(None) };
        let Some(success) = ended.find(|run| run.state == State::Finished) else { return Ok(None) };
        let (before, after) = tokio::try_join!(self.request(caller, &success.id), self.request(caller, &failure.id))?;
        let differences = differences(&before.unwrap_or(Value::Null), &after.unwrap_or(Value::Null));
        Ok(Some(ChangedSince { success: success.id.clone(), failure: failure.id.clone(), differences }))
    }
}
