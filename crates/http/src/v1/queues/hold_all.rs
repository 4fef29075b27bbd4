//! All queued submissions that match a filter are held, and released.

use axum::{body::Bytes, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::hold::NewHold;
use crate::v1::reply::Reply;
use sparkgate_service::Filter;
use sparkgate_web::{
    problem::{Code, Problem, responses::Problems},
    query::{Query, labels},
    session::Caller,
    state::AppState,
};

/// Which submissions are held or released. A submission must match all of the parameters, of which there must be one at least.
#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(in crate::v1) struct HoldQuery {
    queue: Option<String>,
    tenant: Option<String>,
    namespace: Option<String>,
    owner: Option<String>,
    /// Prefix of the name.
    name: Option<String>,
    /// `key=value`; may be repeated, all labels must match.
    #[serde(deserialize_with = "labels")]
    #[param(value_type = Vec<String>)]
    label: Vec<(String, String)>,
}

/// How many submissions a request changed.
#[derive(Serialize, ToSchema)]
pub(in crate::v1) struct HoldCount {
    #[schema(example = 12)]
    changed: u64,
}

impl HoldQuery {
    /// Returns the filter.
    ///
    /// # Errors
    /// It has no criterion: a forgotten parameter would hold everything.
    fn filter(self) -> Result<Filter, Problem> {
        let filter = Filter {
            queue: self.queue,
            tenant: self.tenant,
            namespace: self.namespace,
            owner: self.owner,
            name_prefix: self.name,
            labels: self.label.into_iter().collect(),
            ..Filter::default()
        };
        if filter == Filter::default() {
            let detail = "The query selects no submissions: name a queue, tenant, namespace, owner, name or label.";
            return Err(Problem::new(Code::InvalidParameter, detail));
        }
        Ok(filter)
    }
}

/// Hold all queued submissions that match a filter
///
/// Of those that the caller may kill. Submissions that are held already stay as they are, and those that are submitted later aren't held:
/// to keep a queue from launching anything, pause it.
#[utoipa::path(
    put, path = "/v1/holds", tag = "Queues", operation_id = "holdSubmissions", params(HoldQuery),
    request_body(content = Option<NewHold>),
    responses(Problems, (status = 200, description = "How many are held now that weren't before", body = HoldCount))
)]
pub(in crate::v1) async fn hold_all(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Query(query): Query<HoldQuery>,
    body: Bytes,
) -> Result<Reply<HoldCount>, Problem> {
    let (filter, reason) = (query.filter()?, NewHold::reason_of(&body)?);
    let changed = state.service.queues.hold_all(&caller, &filter, reason.as_deref()).await?;
    Ok(Reply::ok(HoldCount { changed }))
}

/// Release all held submissions that match a filter
///
/// Of those that the caller may kill.
#[utoipa::path(
    delete, path = "/v1/holds", tag = "Queues", operation_id = "releaseSubmissions", params(HoldQuery),
    responses(Problems, (status = 200, description = "How many were released", body = HoldCount))
)]
pub(in crate::v1) async fn release_all(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Query(query): Query<HoldQuery>,
) -> Result<Reply<HoldCount>, Problem> {
    let changed = state.service.queues.release_all(&caller, &query.filter()?).await?;
    Ok(Reply::ok(HoldCount { changed }))
}
