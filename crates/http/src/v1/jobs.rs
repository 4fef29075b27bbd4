//! Jobs: all runs of a name in a tenant.

mod document;

use axum::{
    extract::{FromRequestParts, State},
    http::request::Parts,
};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::reply::Reply;
use document::{Job, JobDetails};
use sparkgate_service::{JobAnswer, JobFilter, Session};
use sparkgate_web::{
    cursor,
    id::part_of_path,
    problem::{Code, FieldError, Problem, ProblemBody, responses::Problems},
    query::{Query, flag, limit},
    session::Caller,
    state::AppState,
};

const LIMIT: u32 = 50;

/// The filters of the list of jobs. A job must match all of them.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct JobQuery {
    tenant: Option<String>,
    /// Prefix of the name.
    name: Option<String>,
    /// Only jobs whose last run that ended failed. Killed runs don't count.
    #[serde(deserialize_with = "flag")]
    #[param(default = false)]
    failing: bool,
    /// Page size.
    #[serde(deserialize_with = "limit::<100, _>")]
    #[param(minimum = 1, maximum = 100, default = 50)]
    limit: Option<u32>,
    /// `next` of the previous page, with the same filters.
    cursor: Option<String>,
}

/// A page of jobs, the latest run first.
#[derive(Serialize, ToSchema)]
pub(super) struct JobList {
    items: Vec<Job>,
    /// The `cursor` of the next page. The last page has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List jobs
///
/// A job is all submissions of one name in one tenant. The list has the jobs of the newest 20,000 submissions that the caller may see and
/// that match the filters, the one with the latest run first. A job moves to the front when it is submitted again, so a later page may lack it.
#[utoipa::path(
    get, path = "/v1/jobs", tag = "Jobs", operation_id = "listJobs", params(JobQuery),
    responses(Problems, (status = 200, description = "One page", body = JobList))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Query(query): Query<JobQuery>,
) -> Result<Reply<JobList>, Problem> {
    let (jobs, next) = page(&state, &caller, query).await?;
    Ok(Reply::ok(JobList { items: jobs.into_iter().map(Job::from).collect(), next }))
}

/// Reads the page of the list that a query asks for, and the cursor of the next one.
pub(crate) async fn page(
    state: &AppState,
    caller: &Session,
    query: JobQuery,
) -> Result<(Vec<sparkgate_service::Job>, Option<String>), Problem> {
    let JobQuery { tenant, name, failing, limit, cursor } = query;
    let filter = JobFilter { tenant, name_prefix: name, is_failing: failing };
    let (keys, list) = (state.service.submissions.cursor_keys(), format!("{filter:?}"));
    let before = cursor.map(|text| cursor::read(&keys, &list, &text)).transpose()?;
    let jobs = state.service.submissions.jobs(caller, &filter, before, limit.unwrap_or(LIMIT)).await?;
    let last = jobs.items.last().and_then(|job| job.runs.first()).filter(|_| jobs.more);
    let next = last.map(|run| cursor::write(&keys, &list, run.number)).transpose()?;
    Ok((jobs.items, next))
}

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TenantQuery {
    /// The tenant, if several that the caller may see have a job of this name.
    pub(crate) tenant: Option<String>,
}

/// Get a job
///
/// The last 100 runs of a name, what they tell, how long the steps of their starts took, and, if the last one failed, what has changed since
/// the job last succeeded.
#[utoipa::path(
    get, path = "/v1/jobs/{job}", tag = "Jobs", operation_id = "getJob", params(JobName, TenantQuery),
    responses(
        Problems,
        (status = 200, description = "The job", body = JobDetails),
        (status = 404, description = "There is no such job", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    Caller(caller): Caller,
    JobName { job }: JobName,
    Query(TenantQuery { tenant }): Query<TenantQuery>,
) -> Result<Reply<JobDetails>, Problem> {
    let job = find(&state, &caller, tenant.as_deref(), &job).await?;
    let service = &state.service;
    let changed = service.submissions.changed_since_success(&caller, &job).await?;
    let starts = service.submissions.job_starts(&caller, &job).await?;
    let advice = service.spark_ui.advice(&caller, &job.tenant, &job.name).await?;
    Ok(Reply::ok(JobDetails::new(job, changed, &starts, advice)))
}

/// Returns the job of this name that the caller may see.
pub(crate) async fn find(
    state: &AppState,
    caller: &Session,
    tenant: Option<&str>,
    name: &str,
) -> Result<sparkgate_service::Job, Problem> {
    match state.service.submissions.job(caller, tenant, name).await? {
        JobAnswer::Found(job) => Ok(*job),
        JobAnswer::Unknown => Err(unknown(name)),
        JobAnswer::Ambiguous(tenants) => {
            let detail = format!("several tenants have a job of this name: {}", tenants.join(", "));
            let error = FieldError { parameter: Some("tenant".to_owned()), detail, pointer: None };
            Err(Problem::for_fields(Code::InvalidParameter, vec![error]))
        }
    }
}

fn unknown(name: &str) -> Problem {
    Problem::new(Code::JobNotFound, format!("No submission that is kept has the name {name:?}."))
}

/// `{job}` of the path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct JobName {
    /// The job's name, with escapes for everything but letters, digits, `-`, `.`, `_` and `~`
    #[param(value_type = String, example = "nightly-etl")]
    pub(crate) job: String,
}

impl<S: Send + Sync> FromRequestParts<S> for JobName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let part = part_of_path(parts, state, "job").await;
        let job = percent_decode_str(&part).decode_utf8_lossy().into_owned();
        // No name has a NUL character.
        if job.contains('\0') { Err(unknown(&job)) } else { Ok(Self { job }) }
    }
}
