//! State changes as a stream of server-sent events
//! (<https://html.spec.whatwg.org/multipage/server-sent-events.html>).

use std::{convert::Infallible, fmt::Write, sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Body,
    http::{HeaderMap, HeaderValue, header},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::time::{sleep, timeout};

use super::Event;
use sparkgate_service::{self, FeedEvent, Interrupted, Subscription};
use sparkgate_web::compression::Live;

const EVENT_STREAM: &str = "text/event-stream";
/// The longest time without data. Proxies close idle connections, and a write detects a client that is gone.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// The delay before a client reconnects, in milliseconds. It is short because another replica may be available.
const RETRY: u32 = 1000;
/// The pause between retries while the database is unavailable.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns whether the client requests a stream.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let types = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types =
        types.flat_map(|value| value.split(',')).map(|one| one.split(';').next().unwrap_or_default().trim());
    types.any(|one| one.eq_ignore_ascii_case(EVENT_STREAM))
}

/// Returns a stream that begins with the `first` events. It ends when this process shuts down, or when the next events
/// are no longer kept, or at `end`: when the caller's credentials end.
///
/// Events that are available together are sent together. Each is serialized once, for its first subscriber.
pub(super) fn stream(
    subscription: Subscription,
    first: &[Arc<FeedEvent>],
    end: impl Future<Output = ()> + Send + 'static,
) -> Response {
    let begin = format!("retry: {RETRY}\n\n{}{}", written(first), mark(&subscription));
    let rest = stream::unfold(subscription, async |mut subscription| {
        let chunk = next(&mut subscription).await?;
        Some((chunk, subscription))
    });
    let chunks = stream::iter([begin]).chain(rest).take_until(end).map(|chunk| Ok::<_, Infallible>(Bytes::from(chunk)));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        // Keeps nginx from buffering the stream.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Extension(Live), Body::from_stream(chunks)).into_response()
}

async fn next(subscription: &mut Subscription) -> Option<String> {
    loop {
        match timeout(HEARTBEAT, subscription.next()).await {
            Ok(Ok(events)) => return Some(written(&events)),
            Err(_) => return Some(format!(":\n{}", mark(subscription))),
            Ok(Err(Interrupted::Failed(error))) if error.may_pass() => {
                tracing::debug!(
                    "reading events for a stream failed and is retried: {}",
                    sparkgate_service::error_chain(&error)
                );
                sleep(PAUSE).await;
            }
            Ok(Err(Interrupted::Failed(error))) => {
                tracing::error!("reading events for a stream failed: {}", sparkgate_service::error_chain(&error));
                return None;
            }
            // The client reconnects, and the response to that request gives the reason.
            Ok(Err(_)) => return None,
        }
    }
}

/// Returns a message that moves the client's Last-Event-ID past events that its filter excludes, so that it reconnects at
/// this position even if it has received no event. A message without data is not an event.
fn mark(subscription: &Subscription) -> String {
    format!("id: {}\n\n", subscription.cursor())
}

fn written(events: &[Arc<FeedEvent>]) -> String {
    let mut text = String::new();
    for event in events {
        text.push_str(event.text(|change| {
            let mut text = format!("id: {}\nevent: state\ndata: ", event.sequence);
            // Serializing strings and numbers can't fail, and the JSON has no line breaks.
            let _ = write!(text, "{}\n\n", serde_json::to_string(&Event::of(change)).unwrap_or_default());
            text
        }));
    }
    text
}
