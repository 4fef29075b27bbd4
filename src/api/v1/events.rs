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
    service::{ChangeFilter, Interrupted, Subscription},
};

pub(super) const LIMIT: u32 = 100;
pub(super) const LIMIT_MAX: u32 = 500;
/// How long a client may wait for an answer.
const LONGEST_WAIT: u64 = 60;
/// Changes that are looked through for one page, so that a rare one doesn't make a request without end.
const LOOKED_THROUGH: i64 = 10_000;

/// Follow what changes
///
/// With `Accept: text/event-stream` a stream of server-sent events without end: `id` is the `sequence`, `event` is `state`
/// and `data` an `Event`. Whoever comes back with `Last-Event-ID`, to whichever replica, misses nothing and gets nothing
/// twice. Otherwise a page; its `next` leads on. Without `Last-Event-ID` and `after` it begins now.
#[utoipa::path(
    get, path = "/v1/events", tag = "Events", operation_id = "followEvents",
    params(
        ("after" = Option<i64>, Query, description = "Only what has a higher `sequence`; 0 for all that is kept", minimum = 0),
        ("Last-Event-ID" = Option<i64>, Header, description = "The same for streams; it comes before `after`", minimum = 0),
        ("submission" = Option<String>, Query, description = "Only changes of this submission"),
        ("owner" = Option<String>, Query, description = "Only of submissions of this owner"),
        ("namespace" = Option<String>, Query, description = "Only of submissions in this namespace"),
        ("label" = Option<Vec<String>>, Query, description = "`key=value`; repeated: all of them"),
        ("limit" = Option<u32>, Query, description = "How many in a page; 100 by default", minimum = 1, maximum = 500),
        ("waitSeconds" = Option<u64>, Query, description = "How long to wait for a page that isn't empty; 0 by default", maximum = 60),
    ),
    responses(
        (status = 200, description = "A page, or a stream (`text/event-stream`)", body = EventList<'_>),
        (status = 400, description = "A parameter that can't be used, or a cursor that is no event's", body = ProblemBody, content_type = "application/problem+json"),
        (status = 410, description = "What comes after the cursor was deleted with its submissions: begin anew", body = ProblemBody, content_type = "application/problem+json"),
        (status = 429, description = "Too many follow already; try again, or another replica", body = ProblemBody, content_type = "application/problem+json"),
        (status = 503, description = "The database can't be reached, or this replica is ending; try again", body = ProblemBody, content_type = "application/problem+json"),
    )
)]
pub(in crate::api) async fn events(
    State(state): State<AppState>,
    headers: HeaderMap,
    mut params: Params,
) -> Result<Response, Problem> {
    let filter = ChangeFilter {
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
    // Who comes back by itself names the same URL again, and in the header where it was.
    if let Some(last) = headers.get("last-event-id").filter(|last| !last.is_empty()) {
        let last = after(Some(last.to_str().unwrap_or_default()))?;
        cursor = if wants_stream { last } else { cursor };
    }
    let mut subscription = state.gateway.subscribe(filter, cursor, state.settings.max_subscribers).await?;
    if wants_stream {
        let first = subscription.pull().await?;
        return Ok(sse::stream(subscription, &first));
    }
    page(&mut subscription, limit as usize, Instant::now() + patience).await
}

/// What there is, or what comes first until `deadline`.
async fn page(subscription: &mut Subscription, limit: usize, deadline: Instant) -> Result<Response, Problem> {
    let begin = subscription.cursor();
    let mut told = Vec::new();
    while told.len() < limit && subscription.is_behind() && subscription.cursor() - begin < LOOKED_THROUGH {
        told.extend(subscription.pull().await?);
    }
    if told.is_empty() && !subscription.is_behind() {
        match timeout_at(deadline, subscription.next()).await {
            Ok(Ok(next)) => told = next,
            Ok(Err(Interrupted::Closing)) | Err(_) => {}
            Ok(Err(error)) => return Err(error.into()),
        }
    }
    let rest = told.split_off(limit.min(told.len()));
    let next = if rest.is_empty() { subscription.cursor() } else { told.last().map_or(begin, |last| last.sequence) };
    Ok(Reply::ok(EventList::new(told.iter().map(|told| &told.change), Some(next))).into_response())
}

fn labels(params: &mut Params) -> Result<Vec<(String, String)>, Problem> {
    let label = |label: String| match label.split_once('=') {
        Some((key, value)) => Ok((key.to_owned(), value.to_owned())),
        None => Err(Problem::parameter("label", format!("{label:?} is not of the form key=value"))),
    };
    params.take_all("label")?.into_iter().map(label).collect()
}

/// The number of a change, or 0.
pub(super) fn after(text: Option<&str>) -> Result<Option<i64>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let number = text.parse().ok().filter(|number| *number >= 0);
    number
        .map(Some)
        .ok_or_else(|| Problem::new(Code::InvalidCursor, format!("{text:?} is not the number of an event.")))
}

/// A time to wait.
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
