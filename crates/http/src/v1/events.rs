//! State changes: those of one submission, and those of all, in pages or as a stream.

use std::time::Duration;

use axum::{
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use chrono::SecondsFormat;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, timeout_at};
use utoipa::{IntoParams, ToSchema};

use super::{reply::Reply, submissions::document::State as StateWord};
use sparkgate_service::{self, EventFilter, Interrupted, Subscription};
use sparkgate_submission::SubmissionId;
use sparkgate_web::{
    id::{Id, not_found},
    problem::{
        Code, Problem, ProblemBody,
        responses::{Problems, SubmissionProblems},
    },
    query::{Query, labels, limit, seconds, submission_id},
    session::Caller,
    state::AppState,
};

mod stream;

const LIMIT: u32 = 100;
/// The most events that are searched for one page, so that a filter that matches few doesn't make the request endless.
const LOOKED_THROUGH: i64 = 10_000;

/// One change of a submission's state.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event<'a> {
    /// The event's position in the order of all events, for `after` and `Last-Event-ID`. It is assigned shortly after the
    /// commit, so the newest events may not have one yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 17)]
    sequence: Option<i64>,
    #[schema(example = "driver-20260102030405-0000")]
    submission_id: &'a str,
    #[schema(example = 1)]
    attempt: i32,
    #[schema(value_type = StateWord)]
    state: &'a str,
    /// The previous state. The first event has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<StateWord>)]
    previous: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    #[schema(format = DateTime, example = "2026-11-21T13:40:05.123Z")]
    at: String,
}

impl<'a> Event<'a> {
    pub(super) fn of(change: &'a sparkgate_service::Event) -> Self {
        Self {
            sequence: change.sequence,
            submission_id: &change.submission_id,
            attempt: change.attempt,
            state: &change.state,
            previous: change.previous.as_deref(),
            reason: change.reason.as_deref(),
            message: change.message.as_deref(),
            at: change.at.to_rfc3339_opts(SecondsFormat::Millis, true),
        }
    }
}

/// Events, the oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct EventList<'a> {
    items: Vec<Event<'a>>,
    /// The `after` of the next page. The last page of one submission's events has none; a page of all events always has
    /// one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "17")]
    next: Option<String>,
}

impl<'a> EventList<'a> {
    pub(super) fn new(items: impl IntoIterator<Item = &'a sparkgate_service::Event>, next: Option<i64>) -> Self {
        Self { items: items.into_iter().map(Event::of).collect(), next: next.map(|next| next.to_string()) }
    }
}

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct EventQuery {
    /// Only events with a higher `sequence`; 0 for all that are kept
    #[param(value_type = Option<i64>, minimum = 0)]
    after: Option<String>,
    /// Only events of this submission
    #[serde(deserialize_with = "submission_id")]
    #[param(value_type = Option<String>)]
    submission: Option<SubmissionId>,
    /// Only events of this owner's submissions
    owner: Option<String>,
    /// Only events of submissions in this namespace
    namespace: Option<String>,
    /// `key=value`; may be repeated, all labels must match
    #[serde(deserialize_with = "labels")]
    #[param(value_type = Vec<String>)]
    label: Vec<(String, String)>,
    /// Page size; 100 by default
    #[serde(deserialize_with = "limit::<500, _>")]
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
    /// How long to wait for the first event if there is none; 0 by default
    #[serde(deserialize_with = "seconds")]
    #[param(value_type = Option<u64>, maximum = 60)]
    wait_seconds: Option<Duration>,
}

/// Follow state changes
///
/// With `Accept: text/event-stream` the response is an endless stream of server-sent events: `id` is the `sequence`,
/// `event` is `state` and `data` is an `Event`. A client that reconnects with `Last-Event-ID`, to any replica, misses no
/// event and gets none twice. Otherwise the response is a page, and its `next` is the `after` of the next page. Without
/// `Last-Event-ID` and `after`, events from now on are returned.
#[utoipa::path(
    get, path = "/v1/events", tag = "Events", operation_id = "followEvents",
    params(
        EventQuery,
        ("Last-Event-ID" = Option<i64>, Header, description = "The same as `after` for streams; takes precedence over it", minimum = 0),
    ),
    responses(
        Problems,
        (status = 200, description = "A page, or a stream (`text/event-stream`)", body = EventList<'_>),
        (status = 400, description = "A parameter is invalid, or the cursor is not the number of an event", body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "Events after the cursor were deleted with their submissions: list the submissions and start again without a cursor", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Too many clients follow events already; try again, or try another replica", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached, or this replica is shutting down; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(super) async fn follow(
    State(state): State<AppState>,
    Caller(caller): Caller,
    headers: HeaderMap,
    Query(query): Query<EventQuery>,
) -> Result<Response, Problem> {
    let mut cursor = after(query.after.as_deref())?;
    let limit = query.limit.unwrap_or(LIMIT) as usize;
    let patience = query.wait_seconds.unwrap_or_default();
    let mut filter = EventFilter::of(&caller);
    filter.submission = query.submission;
    filter.owner = query.owner;
    filter.namespace = query.namespace;
    filter.labels = query.label;
    let wants_stream = stream::is_wanted(&headers);
    // A client that reconnects by itself repeats the URL, `after` included, and sends its position in the header.
    if let Some(last) = headers.get("last-event-id").filter(|last| !last.is_empty()) {
        let last = after(Some(last.to_str().unwrap_or_default()))?;
        cursor = if wants_stream { last } else { cursor };
    }
    let mut subscription =
        state.service.events.subscribe(&caller, filter, cursor, state.settings.max_subscribers).await?;
    if wants_stream {
        let first = subscription.pull().await?;
        let end = state.service.authenticator.clone().end_of(caller);
        return Ok(stream::stream(subscription, &first, end));
    }
    page(&mut subscription, limit, Instant::now() + patience).await
}

#[derive(Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SubmissionEventQuery {
    /// Only events with a higher `sequence`: `next` of the previous page
    #[param(value_type = Option<i64>, minimum = 0)]
    after: Option<String>,
    /// Page size; 100 by default
    #[serde(deserialize_with = "limit::<500, _>")]
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

/// List the events of a submission
///
/// All state changes of every attempt.
#[utoipa::path(
    get, path = "/v1/submissions/{id}/events", tag = "Events", operation_id = "listSubmissionEvents",
    params(Id, SubmissionEventQuery),
    responses(
        SubmissionProblems,
        (status = 200, description = "One page", body = EventList<'_>),
        (status = 304, description = "The page still matches `If-None-Match`"),
    )
)]
pub(super) async fn list_for_submission(
    State(state): State<AppState>,
    Caller(caller): Caller,
    Id { id }: Id,
    Query(query): Query<SubmissionEventQuery>,
) -> Result<Response, Problem> {
    let after = after(query.after.as_deref())?.unwrap_or(0);
    let limit = query.limit.unwrap_or(LIMIT);
    let changes =
        state.service.events.submission_events(&caller, &id, after, limit).await?.ok_or_else(|| not_found(&id))?;
    Ok(Reply::ok(EventList::new(&changes.items, changes.next)).into_response())
}

/// Returns a page of the events that exist. If there are none, waits until `deadline` for the first.
async fn page(subscription: &mut Subscription, limit: usize, deadline: Instant) -> Result<Response, Problem> {
    let begin = subscription.cursor();
    let mut events = Vec::new();
    while events.len() < limit && subscription.is_behind() && subscription.cursor() - begin < LOOKED_THROUGH {
        events.extend(subscription.pull().await?);
    }
    if events.is_empty() && !subscription.is_behind() {
        match timeout_at(deadline, subscription.next()).await {
            Ok(Ok(next)) => events = next,
            Ok(Err(Interrupted::Closing)) | Err(_) => {}
            Ok(Err(error)) => return Err(error.into()),
        }
    }
    let rest = events.split_off(limit.min(events.len()));
    let next = if rest.is_empty() { subscription.cursor() } else { events.last().map_or(begin, |last| last.sequence) };
    Ok(Reply::ok(EventList::new(events.iter().map(|event| &event.event), Some(next))).into_response())
}

/// Parses the sequence number of an event, or 0.
fn after(text: Option<&str>) -> Result<Option<i64>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let number = text.parse().ok().filter(|number| *number >= 0);
    number
        .map(Some)
        .ok_or_else(|| Problem::new(Code::InvalidCursor, format!("{text:?} is not the number of an event.")))
}
