//! `GET /v1/events`

use std::time::Duration;

use axum::{
    extract::State,
    http::HeaderMap,
    response::{IntoResponse, Response},
};
use tokio::time::{Instant, timeout_at};

use super::{
    Problem, Reply,
    event::EventList,
    params::Params,
    problem::{Code, ProblemBody},
    sse,
};
use crate::{
    api::AppState,
    service::{EventFilter, Interrupted, Subscription},
};

pub(super) const LIMIT: u32 = 100;
pub(super) const LIMIT_MAX: u32 = 500;
/// The longest that a client may wait for an answer, in seconds.
const LONGEST_WAIT: u64 = 60;
/// The most events that are searched for one page, so that a filter that matches few doesn't make the request endless.
const LOOKED_THROUGH: i64 = 10_000;

/// Follow state changes
///
/// With `Accept: text/event-stream` the response is an endless stream of server-sent events: `id` is the `sequence`,
/// `event` is `state` and `data` is an `Event`. A client that reconnects with `Last-Event-ID`, to any replica, misses no
/// event and gets none twice. Otherwise the response is a page, and its `next` is the `after` of the next page. Without
/// `Last-Event-ID` and `after`, events from now on are returned.
#[utoipa::path(
    get, path = "/v1/events", tag = "Events", operation_id = "followEvents",
    params(
        ("after" = Option<i64>, Query, description = "Only events with a higher `sequence`; 0 for all that are kept", minimum = 0),
        ("Last-Event-ID" = Option<i64>, Header, description = "The same for streams; takes precedence over `after`", minimum = 0),
        ("submission" = Option<String>, Query, description = "Only events of this submission"),
        ("owner" = Option<String>, Query, description = "Only events of this owner's submissions"),
        ("namespace" = Option<String>, Query, description = "Only events of submissions in this namespace"),
        ("label" = Option<Vec<String>>, Query, description = "`key=value`; may be repeated, all labels must match"),
        ("limit" = Option<u32>, Query, description = "Page size; 100 by default", minimum = 1, maximum = 500),
        ("waitSeconds" = Option<u64>, Query, description = "How long to wait for the first event if there is none; 0 by default", maximum = 60),
    ),
    responses(
        (status = 200, description = "A page, or a stream (`text/event-stream`)", body = EventList<'_>),
        (status = 400, description = "A parameter is invalid, or the cursor is not the number of an event", body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "Events after the cursor were deleted with their submissions: list the submissions and start again without a cursor", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Too many clients follow events already; try again, or try another replica", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached, or this replica is shutting down; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn events(
    State(state): State<AppState>,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, Problem> {
    let filter = EventFilter {
        submission: params.parse("submission", "the id of a submission")?,
        owner: params.take("owner")?,
        namespace: params.take("namespace")?,
        labels: labels(&mut params)?,
    };
    let mut cursor = after(params.take("after")?.as_deref())?;
    let limit = params.limit(LIMIT, LIMIT_MAX)?;
    let patience = seconds(&mut params, "waitSeconds", 0)?;
    params.finish()?;
    let wants_stream = sse::is_wanted(&headers);
    // A client that reconnects by itself repeats the URL, `after` included, and sends its position in the header.
    if let Some(last) = headers.get("last-event-id").filter(|last| !last.is_empty()) {
        let last = after(Some(last.to_str().unwrap_or_default()))?;
        cursor = if wants_stream { last } else { cursor };
    }
    let mut subscription = state.service.events.subscribe(filter, cursor, state.settings.max_subscribers).await?;
    if wants_stream {
        let first = subscription.pull().await?;
        return Ok(sse::stream(subscription, &first));
    }
    page(&mut subscription, limit as usize, Instant::now() + patience).await
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

fn labels(params: &mut Params) -> Result<Vec<(String, String)>, Problem> {
    let label = |label: String| match label.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Problem::parameter("label", format!("{label:?} is not of the form key=value"))),
    };
    params.take_all("label")?.into_iter().map(label).collect()
}

/// Parses the sequence number of an event, or 0.
pub(super) fn after(text: Option<&str>) -> Result<Option<i64>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let number = text.parse().ok().filter(|number| *number >= 0);
    number
        .map(Some)
        .ok_or_else(|| Problem::new(Code::InvalidCursor, format!("{text:?} is not the number of an event.")))
}

/// Takes a waiting time from the query.
pub(super) fn seconds(params: &mut Params, name: &str, default: u64) -> Result<Duration, Problem> {
    let seconds = params.parse(name, "a whole number")?.unwrap_or(default);
    if seconds <= LONGEST_WAIT {
        return Ok(Duration::from_secs(seconds));
    }
    Err(Problem::parameter(name, format!("{seconds} is more than {LONGEST_WAIT}")))
}

impl From<Interrupted> for Problem {
    fn from(interrupted: Interrupted) -> Self {
        let code = match interrupted {
            Interrupted::Expired(_) => Code::CursorExpired,
            Interrupted::Future { .. } => Code::InvalidCursor,
            Interrupted::TooMany(_) => Code::TooManyRequests,
            Interrupted::Closing => Code::Unavailable,
            Interrupted::Failed(error) => return error.into(),
        };
        Self::new(code, format!("{interrupted}."))
    }
}
