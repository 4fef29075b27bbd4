//! Clients that submit at a steady rate, and one that reads lists.

use std::time::Duration;

use anyhow::ensure;

use futures::future::try_join_all;
use hyper::body::Bytes;
use sparkgate_testing::request::request;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::{gateway::Gateway, load::http::Connection, samples::Samples};

const CLIENTS: usize = 16;
/// Lists per second.
const LISTS: f64 = 10.0;

/// Latencies in milliseconds.
pub(super) struct Load {
    pub(super) accepted: Samples,
    pub(super) pages: Samples,
}

impl Load {
    /// Submits `rate` times per second.
    pub(super) async fn run(gateway: &Gateway, rate: usize, time: Duration) -> anyhow::Result<Self> {
        let each = rate as f64 / CLIENTS as f64;
        let submit = (0..CLIENTS).map(|client| {
            let number = move |nth| client + nth * CLIENTS;
            calls(gateway, each, time, move |nth| ("/v1/submissions/create", Some(request(number(nth), "default"))))
        });
        let list = calls(gateway, LISTS, time, |_| ("/v1/submissions?limit=50&state=FINISHED", None));
        let (accepted, pages) = tokio::try_join!(try_join_all(submit), list)?;
        let accepted = accepted.iter().flat_map(|one| one.values()).copied().collect();
        Ok(Self { accepted, pages })
    }
}

/// Sends requests on one connection, `rate` per second: a POST if there is a body.
async fn calls(
    gateway: &Gateway,
    rate: f64,
    time: Duration,
    call: impl Fn(usize) -> (&'static str, Option<Bytes>),
) -> anyhow::Result<Samples> {
    let mut connection = Connection::open(gateway.address).await?;
    let mut milliseconds = Samples::default();
    let mut turns = interval(Duration::from_secs_f64(1.0 / rate));
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let begun = Instant::now();
    for nth in 0.. {
        turns.tick().await;
        if begun.elapsed() >= time {
            break;
        }
        let sent = Instant::now();
        let answer = match call(nth) {
            (path, Some(body)) => connection.post(path, body).await?,
            (path, None) => connection.get(path).await?,
        };
        ensure!(answer.status == 200, "{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        milliseconds.push(sent.elapsed().as_secs_f64() * 1e3);
    }
    Ok(milliseconds)
}
