//! Clients of the namespace that behaves well.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{bail, ensure};
use futures::future::try_join_all;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use crate::{figures::request::request, load::http::Connection, samples::Samples};

const CLIENTS: usize = 4;
/// The pause between two polls of a submission, and between two submissions of a client.
const LOOK: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_millis(50);
/// After this time a submission counts as stuck.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Others {
    address: SocketAddr,
    namespace: &'static str,
    /// The number of submissions so far.
    count: AtomicUsize,
}

/// Latencies in milliseconds.
#[derive(Default)]
pub(super) struct Took {
    accepted: Samples,
    read: Samples,
    launched: Samples,
}

impl Took {
    pub(super) const NAMES: [&'static str; 3] = ["accepted within", "status read within", "pod created within"];

    pub(super) fn p99(&self) -> [f64; 3] {
        [&self.accepted, &self.read, &self.launched].map(|took| took.quantile(0.99))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    submission_id: String,
}

#[derive(Deserialize)]
struct Submission {
    state: String,
}

impl Others {
    pub(super) fn new(address: SocketAddr, namespace: &'static str) -> Self {
        Self { address, namespace, count: AtomicUsize::new(0) }
    }

    /// Submits for `time`, and waits for each pod.
    pub(super) async fn go_on(&mut self, time: Duration) -> anyhow::Result<Took> {
        let end = Instant::now() + time;
        let all = try_join_all((0..CLIENTS).map(|_| self.client(end))).await?;
        let mut took = Took::default();
        for one in all {
            took.accepted.extend(one.accepted.values().iter().copied());
            took.read.extend(one.read.values().iter().copied());
            took.launched.extend(one.launched.values().iter().copied());
        }
        Ok(took)
    }

    async fn client(&self, end: Instant) -> anyhow::Result<Took> {
        let mut connection = Connection::open(self.address).await?;
        let mut took = Took::default();
        let millis = |since: Instant| since.elapsed().as_secs_f64() * 1e3;
        while Instant::now() < end {
            let body = request(self.count.fetch_add(1, Relaxed), self.namespace);
            let sent = Instant::now();
            let answer = loop {
                let answer = connection.post("/v1/submissions/create", body.clone()).await?;
                // A client retries after a 503, and its user waits meanwhile.
                if answer.status != 503 || sent.elapsed() > PATIENCE {
                    break answer;
                }
                sleep(LOOK).await;
            };
            ensure!(answer.status == 200, "{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
            took.accepted.push(millis(sent));
            let path = format!("/v1/submissions/{}", answer.json::<Created>()?.submission_id);
            let mut asked = Instant::now();
            loop {
                let answer = connection.get(&path).await?;
                if answer.status == 200 {
                    took.read.push(millis(asked));
                    if answer.json::<Submission>()?.state == "PENDING" {
                        break;
                    }
                    sleep(LOOK).await;
                    asked = Instant::now();
                }
                if sent.elapsed() > PATIENCE {
                    bail!("{path} isn't PENDING after {PATIENCE:?}");
                }
            }
            took.launched.push(millis(sent));
            sleep(PAUSE).await;
        }
        Ok(took)
    }
}
