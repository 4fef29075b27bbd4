//! All submissions that match a filter and wait are held, released or moved.

use std::collections::BTreeMap;

use axum::{body::Bytes, extract::State};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{parsed, reason, requeue::new_place};
use crate::v1::{reply::Reply, submissions::document::State as StateWord};
use sparkgate_service::{Filter, PlaceChange, PlacesChanged, Session};
use sparkgate_submission as submission;
use sparkgate_web::{
    cursor,
    problem::{Problem, ProblemBody, responses::Problems},
    query::{Moment, NoParameters, Query},
    session::Caller,
    state::AppState,
};

/// A change of submissions that wait.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::v1) struct NewPlaces {
    #[serde(default)]
    #[schema(required = true)]
    filter: PlaceFilter,
    #[serde(default)]
    #[schema(required = true, value_type = PlaceAction)]
    action: String,
    /// Of `hold`: why, for people.
    #[schema(example = "the source table is being repaired", max_length = 256)]
    reason: Option<String>,
    /// Of `move`: another queue; without it, their present ones.
    #[schema(example = "interactive")]
    queue: Option<String>,
    /// Of `move`: the priority there; without it, that of the other queue, or their present ones.
    #[schema(minimum = 0, maximum = 1000)]
    priority: Option<i32>,
    /// `next` of the answer before, with an otherwise equal request.
    cursor: Option<String>,
}

/// What becomes of the submissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum PlaceAction {
    /// Aren't launched before they are released; their time limits don't run.
    Hold,
    /// Have their old places again; their time limits begin anew.
    Release,
    /// Wait in another queue, or with another priority.
    Move,
}

/// Which submissions change. A submission must match all of the fields, of which there must be one at least.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct PlaceFilter {
    /// Any of these states.
    #[schema(value_type = Vec<StateWord>)]
    state: Vec<String>,
    queue: Option<String>,
    tenant: Option<String>,
    namespace: Option<String>,
    owner: Option<String>,
    /// Prefix of the name.
    name: Option<String>,
    /// Prefix of the id.
    id: Option<String>,
    client_id: Option<String>,
    /// A Spark release such as `4.1.4`, or a line, `4.1`.
    spark_version: Option<String>,
    /// All of them must match.
    labels: BTreeMap<String, String>,
    /// Only submissions that were accepted at or after this time (RFC 3339), or this date (its begin in UTC).
    #[schema(example = "2026-01-02")]
    created_after: Option<String>,
    /// Only submissions that were accepted before this time (RFC 3339), or this date (its begin in UTC).
    created_before: Option<String>,
}

impl PlaceFilter {
    fn filter(self) -> Result<Filter, Problem> {
        let state = |word: String| {
            let parsed: Result<submission::State, _> = word.to_ascii_uppercase().parse();
            parsed.map_err(|_| Problem::field("#/filter/state".to_owned(), format!("{word:?} is no state")))
        };
        let time = |name: &str, text: Option<String>| -> Result<Option<DateTime<Utc>>, Problem> {
            let parsed = text.map(|text| text.parse().map(|Moment(time)| time)).transpose();
            parsed.map_err(|error| Problem::field(format!("#/filter/{name}"), format!("it is no time: {error}")))
        };
        Ok(Filter {
            states: self.state.into_iter().map(state).collect::<Result<_, _>>()?,
            id_prefix: self.id,
            name_prefix: self.name,
            owner: self.owner,
            namespace: self.namespace,
            client_id: self.client_id,
            tenant: self.tenant,
            queue: self.queue,
            labels: self.labels,
            spark_version: self.spark_version,
            created_after: time("createdAfter", self.created_after)?,
            created_before: time("createdBefore", self.created_before)?,
            ..Filter::default()
        })
    }
}

/// What became of the submissions that match.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangedPlaces)]
pub(in crate::v1) struct Places {
    /// Number of submissions that this request changed, and their ids.
    #[schema(example = 12)]
    changed: usize,
    ids: Vec<String>,
    /// Number of submissions that can't be changed in this way, and why.
    #[schema(example = 0)]
    refused: usize,
    refusals: Vec<PlaceRefusal>,
    /// The `cursor` of the next request, if there may be more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A submission that stays where it is.
#[derive(Serialize, ToSchema)]
struct PlaceRefusal {
    id: String,
    #[schema(example = "6 is more than queue night permits, 5")]
    reason: String,
}

/// Returns the change that a request asks for.
///
/// # Errors
/// There is no such action, or it doesn't have one of these fields.
pub(crate) fn change(
    action: &str,
    hold_reason: Option<&str>,
    queue: Option<String>,
    priority: Option<i32>,
) -> Result<PlaceChange, Problem> {
    let action = match action {
        "hold" => PlaceAction::Hold,
        "release" => PlaceAction::Release,
        "move" => PlaceAction::Move,
        other => {
            let why = format!("{other:?} is none of hold, release, move");
            return Err(Problem::field("#/action".to_owned(), why));
        }
    };
    let is_stray = |is_given: bool, of: PlaceAction| is_given && of != action;
    for (field, is_stray) in [
        ("reason", is_stray(hold_reason.is_some(), PlaceAction::Hold)),
        ("queue", is_stray(queue.is_some(), PlaceAction::Move)),
        ("priority", is_stray(priority.is_some(), PlaceAction::Move)),
    ] {
        if is_stray {
            return Err(Problem::field(format!("#/{field}"), "the action doesn't have it"));
        }
    }
    Ok(match action {
        PlaceAction::Hold => PlaceChange::Hold { reason: reason(hold_reason)?.map(str::to_owned) },
        PlaceAction::Release => PlaceChange::Release,
        PlaceAction::Move => PlaceChange::Move(new_place(queue, priority)?),
    })
}

/// Changes the submissions that match a filter, after those of a cursor. Returns what became of them, and the next cursor.
///
/// # Errors
/// The filter has no criterion: a forgotten one would change everything. Otherwise those of the change.
pub(crate) async fn change_places(
    state: &AppState,
    caller: &Session,
    (filter, change): (&Filter, &PlaceChange),
    cursor: Option<&str>,
) -> Result<(PlacesChanged, Option<String>), Problem> {
    if *filter == Filter::default() {
        let why = "it selects all submissions: name a queue, tenant, namespace, owner, name, label or state";
        return Err(Problem::field("#/filter".to_owned(), why));
    }
    let (keys, list) = (state.service.submissions.cursor_keys(), format!("{filter:?} {change:?}"));
    let after = cursor.map(|cursor| cursor::read(&keys, &list, cursor)).transpose()?;
    let done = state.service.queues.change_places(caller, filter, change, after).await?;
    let next = done.next.map(|number| cursor::write(&keys, &list, number)).transpose()?;
    Ok((done, next))
}

/// Hold, release or move all submissions that match a filter
///
/// Of those that wait, and that the caller may kill; in the order of their acceptance, 5,000 in a request. Each that changes has its entry
/// in the audit. Submissions that are as they would be already are left out, so repeating the request changes nothing. Those that are
/// submitted later aren't changed: to keep a queue from launching anything, pause it.
#[utoipa::path(
    put, path = "/v1/queue-places", tag = "Queues", operation_id = "changeQueuePlaces", request_body = NewPlaces,
    responses(
        Problems,
        (status = 200, description = "What became of them", body = Places),
        (status = 400, description = "The request is invalid; the problem names the fields", body = ProblemBody, content_type = "application/problem+json"),
        (status = 422, description = "No tenant of the caller may use the queue", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::v1) async fn change_all(
    State(state): State<AppState>,
    Caller(caller): Caller,
    _: Query<NoParameters>,
    body: Bytes,
) -> Result<Reply<Places>, Problem> {
    let NewPlaces { filter, action, reason, queue, priority, cursor } = parsed(&body, "a change of places")?;
    let change = change(&action, reason.as_deref(), queue, priority)?;
    let (done, next) = change_places(&state, &caller, (&filter.filter()?, &change), cursor.as_deref()).await?;
    let PlacesChanged { changed, refused, .. } = done;
    Ok(Reply::ok(Places {
        changed: changed.len(),
        ids: changed.into_iter().map(|id| id.to_string()).collect(),
        refused: refused.len(),
        refusals: refused.into_iter().map(|(id, reason)| PlaceRefusal { id: id.to_string(), reason }).collect(),
        next,
    }))
}
