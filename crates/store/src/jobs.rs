//! Jobs: the runs of each name in a tenant. They are read from the submissions, by the index of names; nothing is written for them.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use super::{
    error::{Error, within},
    row::{parse, readable, words},
    scoped::Scoped,
};
use sparkgate_submission::{State, SubmissionId};

/// How many of the newest submissions are looked at for the list. A job whose last run is older isn't in it.
pub const JOBS_OF: u32 = 20_000;
/// The longest message of a run, in characters.
const MESSAGE: i32 = 500;

/// Which jobs are listed. An empty criterion matches all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    pub tenant: Option<String>,
    pub name_prefix: Option<String>,
    /// Only jobs whose last run that ended failed.
    pub is_failing: bool,
}

/// A run of a job, as far as it is shown in the row of its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRun {
    pub id: SubmissionId,
    pub number: i64,
    pub state: State,
    pub attempt: i32,
    pub exit_code: Option<i32>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub principal: String,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
}

impl JobRun {
    /// Returns how long its driver ran, in seconds; `None` before its end.
    pub fn seconds(&self) -> Option<f64> {
        let took = self.finished_at? - self.started_at?;
        Some(took.num_milliseconds().max(0) as f64 / 1000.0)
    }
}

/// A job with its last runs, the newest first. There is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRuns {
    pub tenant: String,
    pub name: String,
    pub runs: Vec<JobRun>,
}

/// A page of the list of jobs, the latest run first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobPage {
    pub items: Vec<JobRuns>,
    /// There are more jobs after these.
    pub more: bool,
}

#[derive(sqlx::FromRow)]
struct Row {
    tenant: String,
    name: String,
    id: String,
    number: i64,
    state: String,
    attempt: i32,
    exit_code: Option<i32>,
    reason: Option<String>,
    message: Option<String>,
    principal: String,
    created_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    finished_at: Option<DateTime<Utc>>,
}

impl Row {
    fn run(self) -> Result<JobRun, Error> {
        Ok(JobRun {
            id: parse(&self.id, &self.id)?,
            state: parse(&self.id, &self.state)?,
            number: self.number,
            attempt: self.attempt,
            exit_code: self.exit_code,
            reason: self.reason,
            message: self.message,
            principal: self.principal,
            created_at: self.created_at,
            started_at: self.started_at,
            finished_at: self.finished_at,
        })
    }
}

impl Scoped {
    /// Returns up to `limit` jobs, each with up to `runs` runs, whose last run is before the number `before`, if one is given.
    pub async fn jobs(&self, filter: &JobFilter, before: Option<i64>, limit: u32, runs: u32) -> Result<JobPage, Error> {
        let action = "listing jobs";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::<Postgres>::new(
            "WITH newest AS (SELECT s.tenant, s.name, s.number, s.state FROM submissions s WHERE s.name <> '' AND ",
        );
        self.scope.push_condition(&mut query, "s");
        if let Some(tenant) = &filter.tenant {
            query.push(" AND s.tenant = ").push_bind(tenant.clone());
        }
        if let Some(prefix) = &filter.name_prefix {
            query.push(" AND s.name >= ").push_bind(prefix.clone());
            query.push(" AND s.name < ").push_bind(format!("{prefix}\u{10ffff}"));
        }
        query.push(" ORDER BY s.number DESC LIMIT ").push_bind(i64::from(JOBS_OF));
        query.push("), jobs AS (SELECT tenant, name, max(number) AS last");
        if filter.is_failing {
            let ends = State::FAILED.into_iter().chain([State::Finished]);
            query.push(", (array_agg(state ORDER BY number DESC) FILTER (WHERE state = ANY(");
            query.push_bind(words(ends)).push(")))[1] AS ended");
        }
        query.push(" FROM newest GROUP BY tenant, name), page AS (SELECT tenant, name, last FROM jobs WHERE true");
        if let Some(before) = before {
            query.push(" AND last < ").push_bind(before);
        }
        if filter.is_failing {
            query.push(" AND ended <> 'FINISHED'");
        }
        query.push(" ORDER BY last DESC LIMIT ").push_bind(i64::from(limit) + 1);
        query.push(") SELECT page.tenant, page.name, r.* FROM page CROSS JOIN LATERAL (SELECT ");
        push_run(&mut query);
        query.push(" WHERE s.name = page.name AND s.tenant = page.tenant AND ");
        self.scope.push_condition(&mut query, "s");
        query.push(" ORDER BY s.number DESC LIMIT ").push_bind(i64::from(runs));
        query.push(") r ORDER BY page.last DESC, r.number DESC");
        let rows: Vec<Row> = within(action, query.build_query_as().fetch_all(&mut *connection)).await?;
        let mut items = grouped(rows);
        let more = items.len() > limit as usize;
        items.truncate(limit as usize);
        Ok(JobPage { items, more })
    }

    /// Returns the last `runs` runs of a name, by tenant: one item for each tenant that is among them.
    pub async fn job(&self, tenant: Option<&str>, name: &str, runs: u32) -> Result<Vec<JobRuns>, Error> {
        let action = "reading a job";
        let mut connection = self.store.for_long_read(action).await?;
        let mut query = QueryBuilder::<Postgres>::new("SELECT s.tenant, s.name, ");
        push_run(&mut query);
        query.push(" WHERE s.name = ").push_bind(name.to_owned()).push(" AND ");
        self.scope.push_condition(&mut query, "s");
        if let Some(tenant) = tenant {
            query.push(" AND s.tenant = ").push_bind(tenant.to_owned());
        }
        query.push(" ORDER BY s.number DESC LIMIT ").push_bind(i64::from(runs));
        let mut rows: Vec<Row> = within(action, query.build_query_as().fetch_all(&mut *connection)).await?;
        rows.sort_by(|one, other| one.tenant.cmp(&other.tenant).then(other.number.cmp(&one.number)));
        Ok(grouped(rows))
    }
}

fn push_run(query: &mut QueryBuilder<Postgres>) {
    query.push(format_args!(
        "s.id, s.number, s.state, s.attempt, s.exit_code, s.reason, left(s.message, {MESSAGE}) AS message, s.principal,
             s.created_at, s.started_at, s.finished_at FROM submissions s"
    ));
}

/// Puts neighbouring runs of the same job together.
fn grouped(rows: Vec<Row>) -> Vec<JobRuns> {
    let mut jobs: Vec<JobRuns> = Vec::new();
    let named = rows.into_iter().map(|mut row| {
        let job = (std::mem::take(&mut row.tenant), std::mem::take(&mut row.name));
        row.run().map(|run| (job, run))
    });
    for ((tenant, name), run) in readable(named) {
        match jobs.last_mut().filter(|job| job.tenant == tenant && job.name == name) {
            Some(job) => job.runs.push(run),
            None => jobs.push(JobRuns { tenant, name, runs: vec![run] }),
        }
    }
    jobs
}
