//! The part of the kubelet's API that an API server calls for `pods/<name>/log`.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use chrono::{DateTime, Utc};
use http::{StatusCode, header};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::reader::{self, Options};
use super::{Known, Logs};

/// `GET /containerLogs/{namespace}/{pod}/{container}`.
pub(in crate::node) fn router(logs: Logs) -> Router {
    Router::new().route("/containerLogs/{namespace}/{pod}/{container}", get(container_logs)).with_state(logs)
}

/// `PodLogOptions` as an API server passes them on.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Parameters {
    #[serde(default)]
    follow: bool,
    #[serde(default)]
    timestamps: bool,
    #[serde(default)]
    previous: bool,
    tail_lines: Option<usize>,
    limit_bytes: Option<usize>,
    since_seconds: Option<u64>,
    since_time: Option<DateTime<Utc>>,
}

async fn container_logs(
    State(logs): State<Logs>,
    Path((namespace, pod, container)): Path<(String, String, String)>,
    Query(parameters): Query<Parameters>,
) -> Response {
    let log = match logs.find(&namespace, &pod, &container) {
        None => {
            let text = format!("pod {pod:?} in namespace {namespace:?} has no container {container:?} on this node\n");
            return (StatusCode::NOT_FOUND, text).into_response();
        }
        Some(Known::Waiting) => {
            let text = format!("container {container:?} in pod {pod:?} is waiting to start\n");
            return (StatusCode::BAD_REQUEST, text).into_response();
        }
        Some(Known::Log(_)) if parameters.previous => {
            let text = format!("previous terminated container {container:?} in pod {pod:?} not found\n");
            return (StatusCode::BAD_REQUEST, text).into_response();
        }
        Some(Known::Log(log)) => log,
    };
    let seconds = parameters.since_seconds.map(Duration::from_secs);
    let options = Options {
        follow: parameters.follow,
        timestamps: parameters.timestamps,
        tail: parameters.tail_lines,
        limit: parameters.limit_bytes,
        since: parameters
            .since_time
            .or_else(|| seconds.and_then(|ago| Utc::now().checked_sub_signed(chrono::Duration::from_std(ago).ok()?))),
    };
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(reader::read(log, options, sender));
    ([(header::CONTENT_TYPE, "text/plain")], Body::from_stream(ReceiverStream::new(receiver))).into_response()
}
