//! GET with `watch`: the changes since a version, as a stream that ends after its timeout.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, stream};
use serde_json::{Value, json};
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::super::Apiserver;
use super::super::call::Call;
use super::super::failure::{Answer, Failure};
use super::super::object::Object;
use super::super::selector::Selection;
use super::super::store::{Change, State};

/// The duration of a watch if the client sets none.
const LIFE: Duration = Duration::from_secs(40 * 60);
/// The interval of bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long before its end a watch sends a last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

pub(in super::super) fn watch(call: &Call, upgrade: Option<WebSocketUpgrade>) -> Answer<Response> {
    let events = Watcher::start(call)?.into_stream();
    Ok(match upgrade {
        Some(upgrade) => upgrade.on_upgrade(|socket| send(socket, events)),
        None => {
            let lines = events.map(|event| Ok::<_, Infallible>(Bytes::from([&event[..], b"\n"].concat())));
            ([(header::CONTENT_TYPE, "application/json")], Body::from_stream(lines)).into_response()
        }
    })
}

/// Sends the events over a WebSocket, one event in each message, which the Java client requests first.
async fn send(socket: WebSocket, events: impl Stream<Item = Bytes>) {
    let (sink, mut incoming) = socket.split();
    let texts = events.map(|event| Ok(Message::Text(String::from_utf8_lossy(&event).into_owned().into())));
    let gone = async { while let Some(Ok(_)) = incoming.next().await {} };
    tokio::select! {
        _ = texts.forward(sink) => {}
        () = gone => {}
    }
}

struct Watcher {
    server: Apiserver,
    selection: Selection,
    news: Receiver<u64>,
    shutdown: CancellationToken,
    /// The version up to which changes have been read.
    position: u64,
    pending: VecDeque<Bytes>,
    bookmarks: bool,
    next_bookmark: Instant,
    end: Instant,
    ended: bool,
}

impl Watcher {
    fn start(call: &Call) -> Answer<Self> {
        let (selection, options) = (Selection::new(&call.target, &call.options)?, &call.options);
        let seconds = options.integer("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
        let life = seconds.filter(|seconds| *seconds > 0).map_or(LIFE, Duration::from_secs).min(LIFE * 2);
        let initial = options.flag("sendInitialEvents");
        let version = options.version()?;
        let now = Instant::now();
        let mut watcher = Self {
            server: call.server.clone(),
            selection,
            news: call.server.store.subscribe(),
            shutdown: call.server.shutdown.clone(),
            position: version.unwrap_or(0),
            pending: VecDeque::new(),
            bookmarks: options.flag("allowWatchBookmarks"),
            next_bookmark: now + BOOKMARK_EVERY.min(life.saturating_sub(LAST_BOOKMARK)),
            end: now + life,
            ended: false,
        };
        if initial || version.unwrap_or(0) == 0 {
            watcher.begin_with_what_is(initial);
        }
        Ok(watcher)
    }

    /// Adds an `ADDED` event for every existing object, with which a watch without a version begins.
    fn begin_with_what_is(&mut self, mark_end: bool) {
        let Self { server, selection, pending, position, .. } = self;
        server.store.read(|state| {
            let all = state.all(selection.resource, selection.namespace.as_deref());
            pending.extend(all.filter(|object| selection.matches(object)).map(|object| event("ADDED", &object.json)));
            *position = state.version();
        });
        if mark_end && self.bookmarks {
            let bookmark = self.bookmark(&json!({ "k8s.io/initial-events-end": "true" }));
            self.pending.push_back(bookmark);
        }
    }

    fn into_stream(self) -> impl Stream<Item = Bytes> {
        stream::unfold(self, |mut watcher| async move { watcher.next().await.map(|event| (event, watcher)) })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            self.news.mark_unchanged(); // before reading, so that no write is missed in between
            self.read_changes();
            if self.pending.is_empty() && !self.ended {
                self.wait().await;
            }
        }
    }

    /// Waits for a change, the time of a bookmark, or the end.
    async fn wait(&mut self) {
        tokio::select! {
            changed = self.news.changed() => self.ended = changed.is_err(),
            () = sleep_until(self.next_bookmark), if self.bookmarks => {
                let bookmark = self.bookmark(&Value::Null);
                self.pending.push_back(bookmark);
                let last = self.end.checked_sub(LAST_BOOKMARK).unwrap_or(self.end);
                let next = self.next_bookmark + BOOKMARK_EVERY;
                self.next_bookmark = if self.next_bookmark < last { next.min(last) } else { self.end + BOOKMARK_EVERY };
            }
            () = sleep_until(self.end) => self.ended = true,
            () = self.shutdown.cancelled() => self.ended = true,
        }
    }

    fn read_changes(&mut self) {
        let Self { server, selection, pending, position, ended, .. } = self;
        server.store.read(|state: &State| match state.since(*position) {
            Some(changes) => {
                pending.extend(changes.filter_map(|change| seen_through(selection, change)));
                *position = state.version().max(*position);
            }
            None => {
                let message = format!("too old resource version: {position} ({})", state.version());
                pending.push_back(event("ERROR", Failure::expired(message).to_value().to_string().as_bytes()));
                *ended = true;
            }
        });
    }

    fn bookmark(&self, annotations: &Value) -> Bytes {
        let resource = self.selection.resource;
        let mut metadata = json!({ "resourceVersion": self.position.to_string(), "creationTimestamp": null });
        if !annotations.is_null() {
            metadata["annotations"] = annotations.clone();
        }
        let object = json!({ "kind": resource.kind, "apiVersion": resource.api_version(), "metadata": metadata });
        event("BOOKMARK", object.to_string().as_bytes())
    }
}

/// Returns the event of a change for a watch with a selector: an object that begins to match is added, one that no longer
/// matches is deleted.
fn seen_through(selection: &Selection, change: &Change) -> Option<Bytes> {
    let before = change.before.as_ref().filter(|object| selection.matches(object));
    let after = Some(&change.after).filter(|object| !change.removed && selection.matches(object));
    match (before, after) {
        (None, None) => None,
        (None, Some(after)) => Some(event("ADDED", &after.json)),
        (Some(_), Some(after)) => Some(event("MODIFIED", &after.json)),
        (Some(_), None) if change.removed => Some(event("DELETED", &change.after.json)),
        (Some(before), None) => Some(event("DELETED", &as_of(before, change.version).json)),
    }
}

/// Returns an object that no longer matches: as it was before, with the version of the change.
fn as_of(object: &Object, version: u64) -> Arc<Object> {
    let mut value = object.value.clone();
    value["metadata"]["resourceVersion"] = version.to_string().into();
    Object::new(object.resource, value)
}

fn event(kind: &str, object: &[u8]) -> Bytes {
    [b"{\"type\":\"", kind.as_bytes(), b"\",\"object\":", object, b"}"].concat().into()
}
