//! The two observers: a follower of the event stream, and a client that polls one submission.

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use anyhow::{bail, ensure};
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout_at};

use crate::load::{events::Events, http::Connection};

/// A change that isn't seen within this time counts as lost.
const PATIENCE: Duration = Duration::from_secs(30);
const EVERY: Duration = Duration::from_millis(5);

/// When each change was seen, by submission and state.
pub(super) type Times = HashMap<(String, String), Instant>;

/// Follows the stream until `count` changes have been received.
pub(super) async fn told(mut events: Events, count: usize) -> anyhow::Result<Times> {
    let mut times = Times::new();
    let mut end = Instant::now() + PATIENCE;
    while times.len() < count {
        let Ok(next) = timeout_at(end, events.next()).await else {
            bail!("received only {} of {count} changes", times.len());
        };
        for told in next? {
            times.entry((told.submission, told.state)).or_insert(told.at);
            end = told.at + PATIENCE;
        }
    }
    Ok(times)
}

/// Polls a submission until it shows this state or has ended; returns when that answer arrived.
pub(super) async fn read(address: SocketAddr, id: &str, state: &str) -> anyhow::Result<Instant> {
    #[derive(Deserialize)]
    struct Submission {
        state: String,
    }
    let mut connection = Connection::open(address).await?;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let answer = connection.get(&format!("/v1/submissions/{id}")).await?;
        // An overloaded gateway answers 503, so the change isn't shown yet.
        let shown = answer.status != 503;
        ensure!(answer.status == 200 || !shown, "reading {id}: {}", answer.status);
        if shown && [state, "FINISHED"].contains(&answer.json::<Submission>()?.state.as_str()) {
            return Ok(Instant::now());
        }
        sleep(EVERY).await;
    }
    bail!("{id} isn't {state} after {PATIENCE:?}")
}
