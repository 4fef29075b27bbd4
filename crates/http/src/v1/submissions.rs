//! Submissions: their list, one of them, and its end on request.

use std::str::FromStr;

use axum::{extract::State, http::StatusCode};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use utoipa::{IntoParams, ToSchema};

use super::{launch_changes, reply::Reply, spark_ui, usage::document::SubmissionUsage};
use sparkgate_service::{Document, Filter, Found, KillAnswer, Page, Session, StartupStep, StartupTimes, Summary};
use sparkgate_submission as submission;
use sparkgate_web::{
    cursor,
    id::{Id, document, not_found},
    problem::{
        Problem,
        responses::{Problems, SubmissionProblems},
    },
    query::{NoParameters, Query, flag, labels, limit, time},
    session::Caller,
    state::AppState,
};

pub(super) mod create;
pub(super) mod document;
pub(super) mod failure;
mod form;
mod late;
pub(super) mod new;
pub(crate) mod rerun;
mod spark;
pub(super) mod startup;
pub(super) mod wait;

use document::{State as StateWord, Submission};
use failure::Code as FailureCodeWord;

const LIMIT: u32 = 50;

/// The filters of a list of submissions. A submission must match all of them.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ListQuery {
    /// Any of these states, in upper or lower case; repeat the parameter, or separate states by commas.
    #[serde(deserialize_with = "states")]
    #[param(value_type = Vec<StateWord>)]
    state: Vec<submission::State>,
    /// Prefix of the id, such as `driver-20260102`: ids begin with the time of their submission (UTC).
    id: Option<String>,
    /// Prefix of the name.
    name: Option<String>,
    /// Part of the name; the case of ASCII letters doesn't matter.
    #[serde(deserialize_with = "part_of_name")]
    #[param(value_type = Option<String>, min_length = 1, max_length = 253)]
    name_contains: Option<String>,
    owner: Option<String>,
    /// The caller that submitted it, such as `corp:alice`.
    principal: Option<String>,
    /// Why it failed, or isn't running yet: any of these codes, in upper or lower case; repeat the parameter, or separate codes by
    /// commas. Compared with the code in this list: events of its pod may tell more of a submission that waits.
    #[serde(deserialize_with = "failure_codes")]
    #[param(value_type = Vec<FailureCodeWord>)]
    failure_code: Vec<submission::FailureCode>,
    namespace: Option<String>,
    tenant: Option<String>,
    /// The queue that it waits in, or that admitted it.
    queue: Option<String>,
    /// The client's own id.
    client_id: Option<String>,
    /// A Spark release such as `4.1.4`, or a line, `4.1`.
    spark_version: Option<String>,
    /// `key=value`; may be repeated, all labels must match.
    #[serde(deserialize_with = "labels")]
    #[param(value_type = Vec<String>)]
    label: Vec<(String, String)>,
    /// Only submissions that were accepted at or after this time (RFC 3339), or this date (its begin in UTC).
    #[serde(deserialize_with = "time")]
    created_after: Option<DateTime<Utc>>,
    /// Only submissions that were accepted before this time (RFC 3339), or this date (its begin in UTC).
    #[serde(deserialize_with = "time")]
    created_before: Option<DateTime<Utc>>,
    /// Page size.
    #[serde(deserialize_with = "limit::<500, _>")]
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// `next` of the previous page, with the same filters.
    cursor: Option<String>,
    /// Whether to count all matches, which takes a while in a large table.
    #[serde(deserialize_with = "flag")]
    #[param(default = false)]
    total: bool,
}

impl ListQuery {
    /// Returns the filter without the place in the list.
    pub(crate) fn filter(self) -> Filter {
        Filter {
            states: self.state,
            id_prefix: self.id,
            name_prefix: self.name,
            name_part: self.name_contains,
            principal: self.principal,
            failure_codes: self.failure_code,
            owner: self.owner,
            namespace: self.namespace,
            client_id: self.client_id,
            tenant: self.tenant,
            queue: self.queue,
            labels: self.label.into_iter().collect(),
            spark_version: self.spark_version,
            created_after: self.created_after,
            created_before: self.created_before,
        }
    }
}

/// A page of submissions, the newest first.
#[derive(Serialize, ToSchema)]
pub(super) struct SubmissionList {
    items: Vec<Submission>,
    /// The `cursor` of the next page. The last page has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// Number of all matches, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
}

/// List submissions
///
/// The newest first. The order is stable: submissions that are accepted meanwhile don't change later pages. A page of a filter with
/// `nameContains`, `principal`, `failureCode` or `sparkVersion` looks through 20,000 submissions that match the other parameters, so it
/// may have fewer items than `limit`, or none, and yet a `next`.
#[utoipa::path(
    get, path = "/v1/submissions", tag = "Submissions", operation_id = "listSubmissions", params(ListQuery),
    responses(
        Problems,
        (status = 200, description = "One page", body = SubmissionList, headers(("ETag", description = "Entity tag of the page"))),
        (status = 304, description = "The page still matches `If-None-Match`"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Query(query): Query<ListQuery>,
) -> Result<Reply<SubmissionList>, Problem> {
    let Listed { page, next, total } = list_page(&state, &caller, query).await?;
    let names = state.service.api_keys.names(page.items.iter().map(|item| item.principal.as_str())).await;
    let items = page.items.into_iter().map(|item| Submission::from(item).named(&names)).collect();
    Ok(Reply::ok(SubmissionList { items, next, total }))
}

/// A page of the list, the cursor of the next one, and the number of all matches, if requested.
pub(crate) struct Listed {
    pub(crate) page: Page,
    pub(crate) next: Option<String>,
    pub(crate) total: Option<u64>,
}

/// Reads the page of the list that a query asks for.
pub(crate) async fn list_page(state: &AppState, caller: &Session, mut query: ListQuery) -> Result<Listed, Problem> {
    let (cursor, limit, total) = (query.cursor.take(), query.limit, query.total);
    let filter = query.filter();
    let (keys, list) = (state.service.submissions.cursor_keys(), format!("{filter:?}"));
    let before = match cursor {
        None => None,
        Some(text) => {
            let place = cursor::read(&keys, &list, &text)?;
            // A cursor beyond the newest submission comes from before the database was restored to an earlier state.
            if state.service.submissions.newest(caller).await?.is_none_or(|newest| place > newest) {
                return Err(cursor::invalid());
            }
            Some(place)
        }
    };
    let page = state.service.submissions.submissions(caller, &filter, before, limit.unwrap_or(LIMIT)).await?;
    let total = if total { Some(state.service.submissions.count(caller, &filter).await?) } else { None };
    let last = page.last.filter(|_| page.more);
    let next = last.map(|number| cursor::write(&keys, &list, number)).transpose()?;
    Ok(Listed { page, next, total })
}

/// Get a submission
///
/// A submission can be read from the moment that it is accepted until its retention ends, long after its pod is gone.
#[utoipa::path(
    get, path = "/v1/submissions/{id}", tag = "Submissions", operation_id = "getSubmission", params(Id),
    responses(
        SubmissionProblems,
        (status = 200, description = "The submission", body = Submission, headers(("ETag", description = "Entity tag of the document"))),
        (status = 304, description = "The document still matches `If-None-Match`"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    _: Query<NoParameters>,
) -> Result<Reply<Submission>, Problem> {
    let Document { submission, why, usage, spark, waiting, launch_changes, startup, late } =
        document(&state.service, &caller, &id).await?;
    let currency = state.service.usage.currency();
    let used = usage.map(|used| SubmissionUsage::new(used, currency)).transpose()?.flatten();
    let spark_ui = spark_ui::link(&state.service, &submission);
    let spark = spark.and_then(Summary::stored);
    let steps = startup::steps(&steps_of_start(&submission, &startup, spark.as_ref()));
    let names = state.service.api_keys.names([submission.principal.as_str()]).await;
    let mut document = Submission::with(submission, why).named(&names);
    document.queue_place = waiting.map(Into::into);
    document.launch_changes = launch_changes::read(launch_changes);
    document.startup = steps;
    document.late = late.map(Into::into);
    (document.usage, document.spark_ui, document.spark) = (used, spark_ui, spark.map(Into::into));
    Ok(Reply::ok(document))
}

/// Returns the steps of the current attempt's start, with what its driver says of its first job.
pub(crate) fn steps_of_start(
    of: &sparkgate_service::Submission,
    times: &StartupTimes,
    spark: Option<&Summary>,
) -> Vec<(StartupStep, DateTime<Utc>)> {
    let spark = spark.filter(|summary| summary.attempt == of.attempt);
    sparkgate_service::startup(of, times, spark.and_then(|summary| summary.said.first_job_at))
}

/// Kill a submission
///
/// Works in every state; repeating the request changes nothing. The record is kept.
#[utoipa::path(
    delete, path = "/v1/submissions/{id}", tag = "Submissions", operation_id = "killSubmissionResource", params(Id),
    responses(
        SubmissionProblems,
        (status = 200, description = "It has already ended", body = Submission),
        (status = 202, description = "The kill is recorded; the state is `KILLING` until the driver is gone", body = Submission),
    )
)]
pub(super) async fn kill(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    _: Query<NoParameters>,
) -> Result<Reply<Submission>, Problem> {
    let KillAnswer { live, submission, .. } = state.service.submissions.request_kill(&caller, &id).await?;
    let Found { document, .. } = submission.ok_or_else(|| not_found(&id))?;
    let (status, what) =
        if live { (StatusCode::ACCEPTED, "will be ended") } else { (StatusCode::OK, "has already ended") };
    let submission = document.map_err(|error| Problem::unreadable(&id, what, &error))?;
    Ok(Reply::ok(submission.into()).with_status(status))
}

fn states<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<submission::State>, D::Error> {
    words(deserializer, submission::State::ALL.into_iter().map(submission::State::as_str))
}

fn failure_codes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<submission::FailureCode>, D::Error> {
    words(deserializer, submission::FailureCode::ALL.iter().map(|code| code.as_str()))
}

/// Reads words of a closed list, in upper or lower case, repeated or separated by commas.
fn words<'de, T: FromStr, D: Deserializer<'de>>(
    deserializer: D,
    all: impl Iterator<Item = &'static str> + Clone,
) -> Result<Vec<T>, D::Error> {
    let lists = Vec::<String>::deserialize(deserializer)?;
    let words = lists.iter().flat_map(|list| list.split(',')).map(|word| {
        word.trim().to_ascii_uppercase().parse().map_err(|_| {
            D::Error::custom(format!("{word:?} is none of {}", all.clone().collect::<Vec<_>>().join(", ")))
        })
    });
    words.collect()
}

/// Reads a part of a name, which is no longer than a name.
fn part_of_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let part = String::deserialize(deserializer)?;
    match part.len() {
        1..=253 => Ok(Some(part)),
        length => Err(D::Error::custom(format!("a part of a name has 1 to 253 bytes, not {length}"))),
    }
}
