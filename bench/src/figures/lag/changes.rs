//! Makes changes at a fixed rate and measures when each of them is seen.

use std::{net::SocketAddr, time::Duration};

use anyhow::Context;
use futures::future::try_join_all;
use tokio::time::{Instant, sleep_until};

use super::{RATE, drivers::Drivers, kubelet::Change, seen};
use crate::{
    load::{events::Events, kubernetes::Client},
    samples::Samples,
};

/// One change in so many is also awaited by a client that reads the submission.
const READ: usize = 10;

/// Milliseconds from the API server's answer to a change until the change was seen, unless a field's name says
/// otherwise.
#[derive(Default)]
pub(super) struct Lag {
    pub(super) told: Samples,
    pub(super) told_since_sent: Samples,
    pub(super) read: Samples,
    /// From the request for a change to its answer.
    pub(super) api_server: Samples,
}

/// A change that was made, with its times.
struct Made {
    id: String,
    state: &'static str,
    sent: Instant,
    answered: Instant,
    read: Option<Instant>,
}

impl Lag {
    /// Makes `before` changes as a warm-up, and then `count` that are measured.
    pub(super) async fn measure(
        drivers: &mut Drivers<'_>,
        address: SocketAddr,
        before: usize,
        count: usize,
    ) -> anyhow::Result<Self> {
        let told = tokio::spawn(seen::told(Events::follow(address).await?, before + count));
        let begun = Instant::now();
        let mut made = Vec::new();
        for at in 0..before + count {
            sleep_until(begun + Duration::from_secs(1) * u32::try_from(at)? / RATE).await;
            let change = drivers.next_change(at).context("too few drivers")?;
            made.push(tokio::spawn(make(drivers.client.clone(), change, (at % READ == 0).then_some(address))));
        }
        let made = try_join_all(made).await?.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
        let told = told.await??;
        let mut lag = Self::default();
        for one in made.into_iter().skip(before) {
            let told = *told.get(&(one.id, one.state.to_owned())).context("a change was never seen")?;
            lag.told.push(milliseconds(one.answered, told));
            lag.told_since_sent.push(milliseconds(one.sent, told));
            lag.api_server.push(milliseconds(one.sent, one.answered));
            lag.read.extend(one.read.map(|read| milliseconds(one.answered, read)));
        }
        Ok(lag)
    }
}

async fn make(client: Client, change: Change, reader: Option<SocketAddr>) -> anyhow::Result<Made> {
    let (id, state) = change.to();
    let of = id.clone();
    let read = reader.map(|address| tokio::spawn(async move { seen::read(address, &of, state).await }));
    let sent = change.make(&client).await?;
    let answered = Instant::now();
    let read = match read {
        Some(read) => Some(read.await??),
        None => None,
    };
    Ok(Made { id, state, sent, answered, read })
}

/// Returns the milliseconds between two moments; 0 if the watch reported the change before the answer arrived.
fn milliseconds(from: Instant, until: Instant) -> f64 {
    until.saturating_duration_since(from).as_secs_f64() * 1e3
}
