//! The executors of a submission.

use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::reply::Reply;
use sparkgate_submission::ExecutorRecord;
use sparkgate_web::{
    cursor,
    id::{Id, find},
    problem::{Problem, responses::SubmissionProblems},
    query::{Query, limit},
    session::Caller,
    state::AppState,
};

const LIMIT: u32 = 100;

/// One executor of one attempt, as last seen in the cluster.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Executor {
    /// Spark's executor id, the label `spark-exec-id`.
    #[schema(example = 1)]
    id: i64,
    #[schema(example = 1)]
    attempt: i32,
    /// UNKNOWN, PENDING, RUNNING, SUCCEEDED, FAILED or DELETED.
    #[schema(example = "RUNNING")]
    state: &'static str,
    pod: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    /// One word: how the executor ended, or why it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<DateTime<Utc>>,
}

impl From<ExecutorRecord> for Executor {
    fn from(record: ExecutorRecord) -> Self {
        Self {
            id: record.executor_id,
            attempt: record.attempt,
            state: record.state.as_str(),
            pod: record.pod_name,
            node: record.node,
            exit_code: record.exit_code,
            reason: record.reason,
            message: record.message,
            created_at: record.created_at,
            started_at: record.started_at,
            finished_at: record.finished_at,
        }
    }
}

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExecutorQuery {
    /// Page size; 100 by default
    #[serde(deserialize_with = "limit::<1000, _>")]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// `next` of the previous page
    cursor: Option<String>,
}

/// A page of executors, ordered by attempt and id.
#[derive(Serialize, ToSchema)]
pub(super) struct ExecutorList {
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
    params(Id, ExecutorQuery),
    responses(
        SubmissionProblems,
        (status = 200, description = "One page", body = ExecutorList),
        (status = 304, description = "The page still matches `If-None-Match`"),
    )
)]
pub(super) async fn executors(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    Query(query): Query<ExecutorQuery>,
) -> Result<Reply<ExecutorList>, Problem> {
    let limit = query.limit.unwrap_or(LIMIT);
    let (keys, list) = (state.service.submissions.cursor_keys(), format!("executors of {id}"));
    let after = query.cursor.map(|text| cursor::read(&keys, &list, &text)).transpose()?;
    find(&state.service, &caller, &id).await?;
    let mut executors = state.service.submissions.executors(&caller, &id, after.map(apart), limit + 1).await?;
    let next = cursor::cut(&keys, &list, &mut executors, limit, |last| together(last.attempt, last.executor_id))?;
    Ok(Reply::ok(ExecutorList { items: executors.into_iter().map(Executor::from).collect(), next }))
}

/// Packs attempt and executor into one number: attempts are few, and Spark counts executors in 32 bits.
fn together(attempt: i32, executor: i64) -> i64 {
    i64::from(attempt) << 40 | executor & 0xff_ffff_ffff
}

fn apart(place: i64) -> (i32, i64) {
    (i32::try_from(place >> 40).unwrap_or(i32::MAX), place & 0xff_ffff_ffff)
}
