//! The lines of an answer that goes on.

use anyhow::Context;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::Instant;

pub(crate) struct Lines {
    body: Incoming,
    /// The incomplete last line.
    rest: Vec<u8>,
}

impl Lines {
    pub(crate) fn new(body: Incoming) -> Self {
        Self { body, rest: Vec::new() }
    }

    /// Returns the lines that the next part of the answer completes, and when it arrived. There may be none.
    pub(crate) async fn next(&mut self) -> anyhow::Result<(Instant, Vec<u8>)> {
        let frame = self.body.frame().await.context("the stream ended")??;
        let at = Instant::now();
        if let Some(data) = frame.data_ref() {
            self.rest.extend_from_slice(data);
        }
        let whole = self.rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        Ok((at, self.rest.drain(..whole).collect()))
    }
}
