//! `GET /v1/submissions/{id}/executors`

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Problem, Reply, cursor,
    id::{Id, find},
    model::Executor,
    params::Params,
    problem::ProblemBody,
};
use crate::api::AppState;

const LIMIT: u32 = 100;
const LIMIT_MAX: u32 = 1000;

/// A page of executors, ordered by attempt and id.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct ExecutorList {
    items: Vec<Executor>,
    /// The `cursor` of the next page. The last page has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// List the executors of a submission
///
/// All executors that were seen in the cluster, of every attempt, including those that are gone.
#[utoipa::path(
    get, path = "/v1/submissions/{id}/executors", tag = "Submissions", operation_id = "listExecutors",
    params(
        ("id" = String, Path, description = "The submission's id", pattern = "^driver-[0-9-]+$"),
        ("limit" = Option<u32>, Query, description = "Page size; 100 by default", minimum = 1, maximum = 1000),
        ("cursor" = Option<String>, Query, description = "`next` of the previous page"),
    ),
    responses(
        (status = 200, description = "One page", body = ExecutorList),
        (status = 304, description = "The page still matches `If-None-Match`"),
        (status = 400, description = "A parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 404, description = "There is no such submission", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn executors(
    State(state): State<AppState>,
    Id(id): Id,
    mut params: Params,
) -> Result<Reply<ExecutorList>, Problem> {
    let limit = params.limit(LIMIT, LIMIT_MAX)?;
    let given = params.take("cursor")?;
    params.finish()?;
    let (installation, list) = (state.service.submissions.instance(), format!("executors of {id}"));
    let after = given.map(|text| cursor::read(installation.as_bytes(), &list, &text)).transpose()?;
    find(&state.service, &id).await?;
    let mut executors = state.service.submissions.executors(&id, after.map(apart), limit + 1).await?;
    let more = executors.len() > limit as usize;
    executors.truncate(limit as usize);
    let last = executors.last().filter(|_| more);
    let next = last.map(|last| cursor::write(installation.as_bytes(), &list, together(last.attempt, last.executor_id)));
    Ok(Reply::ok(ExecutorList { items: executors.into_iter().map(Executor::from).collect(), next }))
}

/// Packs attempt and executor into one number: attempts are few, and Spark counts executors in 32 bits.
fn together(attempt: i32, executor: i64) -> i64 {
    i64::from(attempt) << 40 | executor & 0xff_ffff_ffff
}

fn apart(place: i64) -> (i32, i64) {
    (i32::try_from(place >> 40).unwrap_or(i32::MAX), place & 0xff_ffff_ffff)
}
