//! Clients of the namespace that behaves well.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context, bail, ensure};
use futures::future::try_join_all;
use hyper::header::HeaderValue;
use serde::Deserialize;
use serde_json::json;
use sparkgate_testing::request::request;
use tokio::time::{Instant, sleep};

use crate::{
    load::{
        http::{Answer, Connection},
        kubernetes::Client,
    },
    samples::Samples,
};

const CLIENTS: usize = 4;
/// The pause between two polls of a submission, and between two submissions of a client.
const LOOK: Duration = Duration::from_millis(5);
const PAUSE: Duration = Duration::from_millis(50);
/// After this time a submission counts as stuck.
const PATIENCE: Duration = Duration::from_secs(120);

pub(super) struct Others {
    address: SocketAddr,
    namespace: &'static str,
    credentials: Option<HeaderValue>,
    /// Reports what a kubelet would report, if drivers are to run.
    kubelet: Option<Client>,
    /// The number of submissions so far.
    count: AtomicUsize,
}

/// Latencies in milliseconds, in the order of [`Took::NAMES`].
#[derive(Default)]
pub(super) struct Took([Samples; Took::NAMES.len()]);

impl Took {
    pub(super) const NAMES: [&'static str; 4] =
        ["accepted within", "status read within", "pod created within", "RUNNING seen within"];
    /// How many of them need no running driver.
    pub(super) const BEFORE_RUNNING: usize = 3;
    const ACCEPTED: usize = 0;
    const READ: usize = 1;
    const LAUNCHED: usize = 2;
    const RUNNING: usize = 3;

    pub(super) fn quantile(&self, share: f64) -> [f64; Self::NAMES.len()] {
        self.0.each_ref().map(|took| took.quantile(share))
    }

    fn push(&mut self, what: usize, since: Instant) {
        self.0[what].push(since.elapsed().as_secs_f64() * 1e3);
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
    driver: Option<Driver>,
}

#[derive(Deserialize)]
struct Driver {
    pod: String,
}

impl Others {
    pub(super) fn new(
        address: SocketAddr,
        namespace: &'static str,
        credentials: Option<HeaderValue>,
        kubelet: Option<Client>,
    ) -> Self {
        Self { address, namespace, credentials, kubelet, count: AtomicUsize::new(0) }
    }

    /// Submits for `time`, and follows each submission until its pod exists, or its driver runs.
    pub(super) async fn go_on(&mut self, time: Duration) -> anyhow::Result<Took> {
        let end = Instant::now() + time;
        let all = try_join_all((0..CLIENTS).map(|_| self.client(end))).await?;
        let mut took = Took::default();
        for one in all {
            for (samples, more) in took.0.iter_mut().zip(&one.0) {
                samples.extend(more.values().iter().copied());
            }
        }
        Ok(took)
    }

    async fn client(&self, end: Instant) -> anyhow::Result<Took> {
        let mut connection = Connection::open(self.address).await?;
        let mut took = Took::default();
        while Instant::now() < end {
            let body = request(self.count.fetch_add(1, Relaxed), self.namespace);
            let sent = Instant::now();
            let answer = loop {
                let path = "/v1/submissions/create";
                let answer = connection.post_as(self.credentials.as_ref(), path, body.clone()).await?;
                // A client retries after a 503, and its user waits meanwhile.
                if answer.status != 503 || sent.elapsed() > PATIENCE {
                    break answer;
                }
                sleep(LOOK).await;
            };
            ensure!(answer.status == 200, "{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
            took.push(Took::ACCEPTED, sent);
            let path = format!("/v1/submissions/{}", answer.json::<Created>()?.submission_id);
            let mut asked = Instant::now();
            let pod = loop {
                let answer = self.get(&mut connection, &path).await?;
                if answer.status == 200 {
                    took.push(Took::READ, asked);
                    let submission: Submission = answer.json()?;
                    if submission.state == "PENDING" {
                        break submission.driver.context("a pending submission without a driver")?.pod;
                    }
                    sleep(LOOK).await;
                    asked = Instant::now();
                }
                if sent.elapsed() > PATIENCE {
                    bail!("{path} isn't PENDING after {PATIENCE:?}");
                }
            };
            took.push(Took::LAUNCHED, sent);
            if let Some(kubelet) = &self.kubelet {
                let started = Instant::now();
                tokio::try_join!(self.start(kubelet, &pod), self.until_running(&mut connection, &path))?;
                took.push(Took::RUNNING, started);
            }
            sleep(PAUSE).await;
        }
        Ok(took)
    }

    /// Waits as a client does that wants to know when its driver runs.
    async fn until_running(&self, connection: &mut Connection, path: &str) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let answer = self.get(connection, &format!("{path}/wait?state=RUNNING&timeoutSeconds=30")).await?;
            if answer.status == 200 && answer.json::<Submission>()?.state == "RUNNING" {
                return Ok(());
            }
        }
        bail!("{path} isn't RUNNING after {PATIENCE:?}")
    }

    async fn get(&self, connection: &mut Connection, path: &str) -> anyhow::Result<Answer> {
        connection.get_as(self.credentials.as_ref(), path).await
    }

    /// Reports that the driver's container runs.
    async fn start(&self, kubelet: &Client, pod: &str) -> anyhow::Result<()> {
        let path = format!("/api/v1/namespaces/{}/pods/{pod}/status", self.namespace);
        let now = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let status = json!({"status": {"phase": "Running", "startTime": now, "hostIP": "10.0.17.21",
            "podIP": "10.0.29.143", "containerStatuses": [{"name": "spark-kubernetes-driver", "ready": true,
                "image": "spark", "imageID": "", "restartCount": 0, "state": {"running": {"startedAt": now}}}]}});
        kubelet.merge(&path, status.to_string()).await.map(drop)
    }
}
