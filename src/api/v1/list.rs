//! `GET /v1/submissions`

use std::collections::BTreeMap;

use axum::extract::State;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::{Problem, Reply, cursor, model::Submission, params::Params, problem::ProblemBody};
use crate::{api::AppState, service::Filter, submission};

const LIMIT: u32 = 50;
const LIMIT_MAX: u32 = 500;

/// The filters of a list of submissions. A submission must match all of them.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "only describes the query; `Params` reads it")]
pub(in crate::api) struct ListParams {
    /// Any of these states; repeat the parameter, or separate states by commas.
    #[param(example = json!(["RUNNING"]), required = false)]
    state: Vec<super::model::State>,
    /// Prefix of the name.
    name: Option<String>,
    owner: Option<String>,
    namespace: Option<String>,
    /// `key=value`; may be repeated, all labels must match.
    #[param(example = json!(["team=data"]), required = false)]
    label: Vec<String>,
    /// Only submissions that were accepted at or after this time (RFC 3339).
    #[param(format = DateTime)]
    created_after: Option<String>,
    /// Only submissions that were accepted before this time (RFC 3339).
    #[param(format = DateTime)]
    created_before: Option<String>,
    /// Page size.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// `next` of the previous page, with the same filters.
    cursor: Option<String>,
    /// Whether to count all matches, which takes a while in a large table.
    #[param(default = false)]
    total: Option<bool>,
}

/// A page of submissions, the newest first.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct SubmissionList {
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
/// The newest first. The order is stable: submissions that are accepted meanwhile don't change later pages.
#[utoipa::path(
    get, path = "/v1/submissions", tag = "Submissions", operation_id = "listSubmissions", params(ListParams),
    responses(
        (status = 200, description = "One page", body = SubmissionList, headers(("ETag", description = "Entity tag of the page"))),
        (status = 304, description = "The page still matches `If-None-Match`"),
        (status = 400, description = "A parameter is invalid", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn list(
    axum::extract::State(state): State<AppState>,
    mut params: Params,
) -> Result<Reply<SubmissionList>, Problem> {
    let filter = filter(&mut params)?;
    let limit = params.limit(LIMIT, LIMIT_MAX)?;
    let given = params.take("cursor")?;
    let count = params.parse("total", "true or false")?.unwrap_or(false);
    params.finish()?;
    let service = &state.service;
    let (installation, list) = (service.submissions.instance(), format!("{filter:?}"));
    let before = match given {
        None => None,
        Some(text) => {
            let place = cursor::read(installation.as_bytes(), &list, &text)?;
            // A cursor beyond the newest submission comes from before the database was restored to an earlier state.
            if service.submissions.newest().await?.is_none_or(|newest| place > newest) {
                return Err(cursor::invalid());
            }
            Some(place)
        }
    };
    let page = service.submissions.submissions(&filter, before, limit).await?;
    let total = if count { Some(service.submissions.count(&filter).await?) } else { None };
    let last = page.last.filter(|_| page.more);
    let next = last.map(|number| cursor::write(installation.as_bytes(), &list, number));
    let items = page.items.into_iter().map(Submission::from).collect();
    Ok(Reply::ok(SubmissionList { items, next, total }))
}

fn filter(params: &mut Params) -> Result<Filter, Problem> {
    let mut states = Vec::new();
    for word in params.take_all("state")?.iter().flat_map(|words| words.split(',')) {
        let state = word.trim().parse::<submission::State>();
        states.push(state.map_err(|_| Problem::parameter("state", format!("{word:?} is none of {}", all_states())))?);
    }
    let mut labels = BTreeMap::new();
    for label in params.take_all("label")? {
        let (key, value) = label
            .split_once('=')
            .ok_or_else(|| Problem::parameter("label", format!("{label:?} is not of the form key=value")))?;
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(Filter {
        states,
        name_prefix: params.take("name")?,
        owner: params.take("owner")?,
        namespace: params.take("namespace")?,
        labels,
        created_after: params.time("createdAfter")?,
        created_before: params.time("createdBefore")?,
    })
}

fn all_states() -> String {
    submission::State::ALL.map(submission::State::as_str).join(", ")
}
