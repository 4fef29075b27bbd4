//! `GET /v1/submissions`

use std::collections::BTreeMap;

use axum::extract::State;
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::{Problem, Reply, cursor, model::Submission, params::Params, problem::ProblemBody};
use crate::{api::AppState, service::Filter, submission};

const LIMIT: u32 = 50;
const LIMIT_MAX: u32 = 500;

/// Which submissions are asked for, all of it at once.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the query to readers of the API; `Params` is what reads it")]
pub(in crate::api) struct ListParams {
    /// Any of these states; repeated or separated by commas.
    #[param(example = json!(["RUNNING"]), required = false)]
    state: Vec<super::model::State>,
    /// What the name begins with.
    name: Option<String>,
    owner: Option<String>,
    namespace: Option<String>,
    /// `key=value`; repeated: all of them.
    #[param(example = json!(["team=data"]), required = false)]
    label: Vec<String>,
    /// Accepted at this time or later (RFC 3339).
    #[param(format = DateTime)]
    created_after: Option<String>,
    /// Accepted before this time (RFC 3339).
    #[param(format = DateTime)]
    created_before: Option<String>,
    /// How many at once.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// The `next` of the page before, with the same filters.
    cursor: Option<String>,
    /// Whether to count all that are found: it takes a while in a large table.
    #[param(default = false)]
    total: Option<bool>,
}

/// A page of submissions, the newest first.
#[derive(Serialize, ToSchema)]
pub(in crate::api) struct SubmissionList {
    items: Vec<Submission>,
    /// The `cursor` of the next page; there is none after the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// How many the filters find, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
}

/// List submissions
///
/// The newest first. The order is stable: what is accepted meanwhile changes no later page.
#[utoipa::path(
    get, path = "/v1/submissions", tag = "Submissions", operation_id = "listSubmissions", params(ListParams),
    responses(
        (status = 200, description = "A page of them", body = SubmissionList, headers(("ETag", description = "Of this page"))),
        (status = 304, description = "The page is still the one of `If-None-Match`"),
        (status = 400, description = "A parameter that can't be used", body = ProblemBody, content_type = "application/problem+json"),
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
    let gateway = &state.gateway;
    let (installation, list) = (gateway.instance(), format!("{filter:?}"));
    let before = match given {
        None => None,
        Some(text) => {
            let place = cursor::read(installation.as_bytes(), &list, &text)?;
            // One of a database that has been put back to an earlier state.
            if gateway.newest().await?.is_none_or(|newest| place > newest) {
                return Err(cursor::invalid());
            }
            Some(place)
        }
    };
    let page = gateway.submissions(&filter, before, limit).await?;
    let total = if count { Some(gateway.count(&filter).await?) } else { None };
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
