//! Changes as a stream of server-sent events (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).

use std::{convert::Infallible, fmt::Write, sync::Arc, time::Duration};

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::time::{sleep, timeout};

use super::event::Event;
use crate::service::{self, Interrupted, Subscription, Told};

pub(super) const EVENT_STREAM: &str = "text/event-stream";
/// So often something is sent: connections that nobody uses are cut on the way, and a client that is gone is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How soon a client comes back, in milliseconds: another replica may be there.
const RETRY: u32 = 1000;
/// While the database is away.
const PAUSE: Duration = Duration::from_secs(1);

/// Whether the client asks for a stream.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let types = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types =
        types.flat_map(|value| value.split(',')).map(|one| one.split(';').next().unwrap_or_default().trim());
    types.any(|one| one.eq_ignore_ascii_case(EVENT_STREAM))
}

/// A stream that begins with what there is already, and ends when this process does, or when what comes next isn't kept.
///
/// Many changes are written at once, each as it was written for the first subscriber.
pub(super) fn stream(subscription: Subscription, first: &[Arc<Told>]) -> Response {
    let begin = format!("retry: {RETRY}\n\n{}{}", written(first), mark(&subscription));
    let rest = stream::unfold(subscription, async |mut subscription| {
        let chunk = next(&mut subscription).await?;
        Some((chunk, subscription))
    });
    let chunks = stream::iter([begin]).chain(rest).map(|chunk| Ok::<_, Infallible>(Bytes::from(chunk)));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // nginx would collect it.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(chunks)).into_response()
}

async fn next(subscription: &mut Subscription) -> Option<String> {
    loop {
        match timeout(HEARTBEAT, subscription.next()).await {
            Ok(Ok(told)) => return Some(written(&told)),
            Err(_) => return Some(format!(":\n{}", mark(subscription))),
            Ok(Err(Interrupted::Failed(error))) if error.may_pass() => {
                tracing::debug!("telling changes: {}", service::chain(&error));
                sleep(PAUSE).await;
            }
            Ok(Err(Interrupted::Failed(error))) => {
                tracing::error!("telling changes: {}", service::chain(&error));
                return None;
            }
            // It comes back, and is told.
            Ok(Err(_)) => return None,
        }
    }
}

/// Moves the client's Last-Event-ID past what it doesn't want, so that it comes back to here even if it was told nothing.
/// Without data this is no event.
fn mark(subscription: &Subscription) -> String {
    format!("id: {}\n\n", subscription.cursor())
}

fn written(told: &[Arc<Told>]) -> String {
    let mut text = String::new();
    for one in told {
        text.push_str(one.text(|change| {
            let mut text = format!("id: {}\nevent: state\ndata: ", one.sequence);
            // Strings and numbers: that always works, and JSON has no line breaks.
            let _ = write!(text, "{}\n\n", serde_json::to_string(&Event::of(change)).unwrap_or_default());
            text
        }));
    }
    text
}
