//! Followers: one reads the stream of events, another its pages, each from one replica after the other.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::SeqCst},
    },
    time::Duration,
};

use anyhow::Context;
use futures::TryStreamExt;
use reqwest::{
    Method,
    header::{ACCEPT, HeaderValue},
};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};
use tokio_util::io::StreamReader;

use super::{RUN, gateway::Gateway, record::Recorder};
use crate::history::{self, Change, Event, Line};

/// The gateway sends a comment every 15 seconds, so a stream that is silent for longer is left.
const SILENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(300);
const STREAM: &str = "stream";
const PAGES: &str = "pages";
/// How long followers may take to reach the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The numbers of the last events that they have seen.
pub(super) struct Followers {
    last: Vec<Arc<AtomicI64>>,
    _tasks: JoinSet<()>,
}

impl Followers {
    /// Begins at the present end of all events.
    pub(super) async fn begin(
        gateways: &[Gateway],
        run: &str,
        recorder: &Recorder<impl Write + Send + 'static>,
    ) -> anyhow::Result<Self> {
        let now = present(gateways).await.context("reading the present position of the events")?;
        let last: Vec<_> = (0..2).map(|_| Arc::new(AtomicI64::new(now))).collect();
        let mut tasks = JoinSet::new();
        for follower in [STREAM, PAGES].map(str::to_owned) {
            recorder.add(Line::Follower(history::Follower { follower, after: now }))?;
        }
        let follower = |name: &str, last: &Arc<AtomicI64>| Follower {
            gateways: gateways.to_vec(),
            label: format!("{RUN}={run}"),
            name: name.to_owned(),
            last: last.clone(),
            recorder: recorder.clone(),
        };
        tasks.spawn(follower(STREAM, &last[0]).stream());
        tasks.spawn(follower(PAGES, &last[1]).pages());
        Ok(Self { last, _tasks: tasks })
    }

    /// Waits until all have seen the event with this number.
    pub(super) async fn reach(&self, number: i64) {
        let deadline = Instant::now() + PATIENCE;
        while self.last.iter().any(|last| last.load(SeqCst) < number) && Instant::now() < deadline {
            sleep(PAUSE).await;
        }
    }
}

async fn present(gateways: &[Gateway]) -> Option<i64> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        for gateway in gateways {
            if let Some(page) = gateway.get("/v1/events").await {
                return page["next"].as_str()?.parse().ok();
            }
        }
        sleep(PAUSE).await;
    }
    None
}

struct Follower<W> {
    gateways: Vec<Gateway>,
    label: String,
    name: String,
    last: Arc<AtomicI64>,
    recorder: Recorder<W>,
}

impl<W: Write> Follower<W> {
    async fn stream(self) {
        for gateway in self.gateways.iter().cycle() {
            // However a stream ends, it goes on at another replica.
            let _ = self.stream_of(gateway).await;
            sleep(PAUSE).await;
        }
    }

    async fn stream_of(&self, gateway: &Gateway) -> anyhow::Result<()> {
        let request = gateway.request(Method::GET, &format!("/v1/events?label={}", self.label));
        let request = request.header(ACCEPT, "text/event-stream");
        let request = request.header("Last-Event-ID", HeaderValue::from(self.last.load(SeqCst)));
        let response = timeout(SILENCE, request.send()).await??.error_for_status()?;
        let mut lines =
            BufReader::new(StreamReader::new(response.bytes_stream().map_err(std::io::Error::other))).lines();
        while let Some(line) = timeout(SILENCE, lines.next_line()).await?? {
            if let Some(data) = line.strip_prefix("data:") {
                self.take(serde_json::from_str(data)?)?;
            }
        }
        Ok(())
    }

    async fn pages(self) {
        for gateway in self.gateways.iter().cycle() {
            let path =
                format!("/v1/events?label={}&after={}&limit=50&waitSeconds=5", self.label, self.last.load(SeqCst));
            let page = gateway.get(&path).await;
            let items = page.as_ref().and_then(|page| page["items"].as_array());
            for event in items.into_iter().flatten() {
                // What can't be written ends the run elsewhere.
                let _ = self.take(event.clone());
            }
            // Filtered events move the position, too.
            if let Some(next) = page.as_ref().and_then(|page| page["next"].as_str()?.parse().ok()) {
                self.last.fetch_max(next, SeqCst);
            }
            sleep(PAUSE).await;
        }
    }

    fn take(&self, event: Value) -> anyhow::Result<()> {
        let change: Change = serde_json::from_value(event)?;
        let last = change.sequence.unwrap_or_default();
        self.recorder.add(Line::Event(Event { follower: self.name.clone(), at: self.recorder.now(), change }))?;
        self.last.fetch_max(last, SeqCst);
        Ok(())
    }
}
