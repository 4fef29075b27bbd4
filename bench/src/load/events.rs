//! One follower of `GET /v1/events`, such as a dashboard.

use std::net::SocketAddr;

use anyhow::Context;
use serde::Deserialize;
use tokio::time::Instant;

use super::{http::Connection, lines::Lines};

pub(crate) struct Events {
    lines: Lines,
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
        let lines = Lines::new(connection.stream("/v1/events").await?);
        Ok(Self { lines, _connection: connection })
    }

    /// Returns the next changes of the stream; may be empty.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Vec<Told>> {
        let (at, lines) = self.lines.next().await.context("reading the events")?;
        let data = lines.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
        let told = |line: &[u8]| -> anyhow::Result<Told> {
            let Event { submission_id: submission, state } = serde_json::from_slice(line)?;
            Ok(Told { submission, state, at })
        };
        data.map(told).collect()
    }
}
