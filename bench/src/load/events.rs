//! One follower of `GET /v1/events`, such as a dashboard.

use std::net::SocketAddr;

use anyhow::Context;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde::Deserialize;
use tokio::time::Instant;

use super::http::Connection;

pub(crate) struct Events {
    body: Incoming,
    /// The incomplete last line.
    rest: Vec<u8>,
    /// Keeps the stream's connection open.
    _connection: Connection,
}

/// A state change, and when it arrived.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) submission: String,
    pub(crate) state: String,
    pub(crate) at: Instant,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    submission_id: String,
    state: String,
}

impl Events {
    /// Follows the stream from now on.
    pub(crate) async fn follow(address: SocketAddr) -> anyhow::Result<Self> {
        let mut connection = Connection::open(address).await?;
        let body = connection.stream("/v1/events").await?;
        Ok(Self { body, rest: Vec::new(), _connection: connection })
    }

    /// Returns the next changes of the stream; may be empty.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Vec<Told>> {
        let frame = self.body.frame().await.context("the event stream ended")??;
        let at = Instant::now();
        if let Some(data) = frame.data_ref() {
            self.rest.extend_from_slice(data);
        }
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let lines: Vec<u8> = self.rest.drain(..whole).collect();
        let data = lines.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
        let told = |line: &[u8]| -> anyhow::Result<Told> {
            let Event { submission_id: submission, state } = serde_json::from_slice(line)?;
            Ok(Told { submission, state, at })
        };
        data.map(told).collect()
    }
}
