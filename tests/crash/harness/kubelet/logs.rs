//! What containers write, and the part of the kubelet's API with which an API server reads it.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Path, Query, State},
    response::{IntoResponse, Response},
    routing::get,
    serve::Listener,
};
use chrono::{DateTime, SecondsFormat, Utc};
use futures::stream;
use http::StatusCode;
use serde::Deserialize;
use sparkgate_testing::SelfSigned;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::task::AbortOnDropHandle;

use super::DRIVER;

/// The time for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// The log of a driver's container.
#[derive(Debug, Clone, Default)]
struct Written {
    lines: Vec<(DateTime<Utc>, String)>,
    has_begun: bool,
    has_ended: bool,
}

#[derive(Debug)]
struct PodLog {
    namespace: String,
    pod: String,
    written: watch::Sender<Written>,
    /// A node removes a log with its pod.
    is_on_node: bool,
}

/// All logs, by the uids of their pods.
#[derive(Debug, Default)]
pub(crate) struct NodeLogs(Mutex<BTreeMap<String, PodLog>>);

/// The log of one pod, for its container.
#[derive(Debug)]
pub(super) struct ContainerLog {
    logs: Arc<NodeLogs>,
    uid: String,
}

impl NodeLogs {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, PodLog>> {
        self.0.lock().unwrap()
    }

    /// Returns the log of a pod whose container hasn't begun.
    pub(super) fn add(self: &Arc<Self>, namespace: &str, pod: &str, uid: &str) -> ContainerLog {
        let (namespace, pod, written) = (namespace.to_owned(), pod.to_owned(), watch::Sender::default());
        self.all().insert(uid.to_owned(), PodLog { namespace, pod, written, is_on_node: true });
        ContainerLog { logs: self.clone(), uid: uid.to_owned() }
    }

    /// Removes the log of a pod that is gone from its node.
    pub(super) fn remove(&self, uid: &str) {
        if let Some(log) = self.all().get_mut(uid) {
            log.is_on_node = false;
            log.written.send_modify(|written| written.has_ended = true);
        }
    }

    /// Returns all that the container of a pod ever wrote.
    pub(crate) fn text(&self, uid: &str) -> String {
        let all = self.all();
        let Some(log) = all.get(uid) else { return String::new() };
        log.written.borrow().lines.iter().map(|(_, line)| format!("{line}\n")).collect()
    }

    fn find(&self, namespace: &str, pod: &str) -> Option<watch::Receiver<Written>> {
        let all = self.all();
        let found = all.values().find(|log| log.is_on_node && log.namespace == namespace && log.pod == pod)?;
        Some(found.written.subscribe())
    }

    /// Serves the logs; returns the port, and a handle with whose end the server ends.
    pub(crate) async fn serve(self: &Arc<Self>) -> (u16, AbortOnDropHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let tls = TlsListener { listener, tls: TlsAcceptor::from(SelfSigned::create().config) };
        let router = Router::new().route("/containerLogs/{namespace}/{pod}/{container}", get(container_logs));
        let router = router.with_state(self.clone());
        (port, AbortOnDropHandle::new(tokio::spawn(async move { axum::serve(tls, router).await.unwrap() })))
    }
}

impl ContainerLog {
    /// Writes more lines, each different from all others of all pods.
    pub(super) fn write(&self, count: usize) {
        self.change(|written| {
            written.has_begun = true;
            for _ in 0..count {
                let line = format!(
                    "{} {:06} as long as a line of Spark mostly is, or nearly so",
                    self.uid,
                    written.lines.len()
                );
                written.lines.push((Utc::now(), line));
            }
        });
    }

    /// Nothing more is written.
    pub(super) fn end(&self) {
        self.change(|written| written.has_ended = true);
    }

    fn change(&self, change: impl FnOnce(&mut Written)) {
        if let Some(log) = self.logs.all().get(&self.uid) {
            log.written.send_modify(change);
        }
    }
}

struct TlsListener {
    listener: TcpListener,
    tls: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, address)) = self.listener.accept().await else { continue };
            if let Ok(Ok(stream)) = timeout(HANDSHAKE, self.tls.accept(stream)).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// `PodLogOptions` as an API server passes them on.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parameters {
    #[serde(default)]
    follow: bool,
    #[serde(default)]
    timestamps: bool,
    tail_lines: Option<usize>,
    since_time: Option<DateTime<Utc>>,
}

async fn container_logs(
    State(logs): State<Arc<NodeLogs>>,
    Path((namespace, pod, container)): Path<(String, String, String)>,
    Query(parameters): Query<Parameters>,
) -> Response {
    let Some(log) = logs.find(&namespace, &pod).filter(|_| container == DRIVER) else {
        return (StatusCode::NOT_FOUND, format!("there is no container {container} of {pod}\n")).into_response();
    };
    if !log.borrow().has_begun {
        let text = format!("container \"{container}\" in pod \"{pod}\" is waiting to start: ContainerCreating\n");
        return (StatusCode::BAD_REQUEST, text).into_response();
    }
    let Parameters { follow, timestamps, tail_lines, since_time } = parameters;
    let first = {
        let lines = &log.borrow().lines;
        let since = since_time.map_or(0, |since| lines.partition_point(|(time, _)| *time < since));
        since.max(tail_lines.map_or(0, |tail| lines.len().saturating_sub(tail)))
    };
    let shown = move |(time, line): &(DateTime<Utc>, String)| match timestamps {
        true => format!("{} {line}\n", time.to_rfc3339_opts(SecondsFormat::Nanos, true)),
        false => format!("{line}\n"),
    };
    let text = stream::unfold((log, first), move |(mut log, at)| async move {
        loop {
            let (text, next, has_ended): (String, _, _) = {
                let written = log.borrow_and_update();
                let new = written.lines.get(at..).unwrap_or_default();
                (new.iter().map(shown).collect(), written.lines.len(), written.has_ended)
            };
            if !text.is_empty() {
                return Some((Ok::<_, Infallible>(text), (log, next)));
            }
            if has_ended || !follow || log.changed().await.is_err() {
                return None;
            }
        }
    });
    Body::from_stream(text).into_response()
}
