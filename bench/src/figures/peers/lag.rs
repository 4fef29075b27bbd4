//! The time from a change of a pod until a peer's clients see it. Pods change at a fixed rate, all of them to `Running`
//! and then all of them to `Succeeded`.

use std::time::Duration;

use anyhow::Context;
use futures::future::try_join_all;
use tokio::time::{Instant, sleep_until};

use super::table::{Measure, Table};
use crate::{
    bench::Peer,
    figures::lag::kubelet::{run, succeed},
    load::{kubernetes::Client, sightings::Sightings},
    samples::Samples,
};

/// Changes per second.
const RATE: u32 = 10;

/// A driver that waits to run.
pub(super) struct Driver {
    /// What the peer calls it.
    pub(super) id: String,
    /// The path of its pod.
    pub(super) pod: String,
}

/// Runs and ends the drivers. `states` has the peer's words for running and ended.
pub(super) async fn measure(
    client: &Client,
    drivers: &[Driver],
    seen: &Sightings<(String, String)>,
    states: [&'static str; 2],
    peer: Peer,
    table: &mut Table,
) -> anyhow::Result<()> {
    let mut lag = Samples::default();
    for (end, state) in [(false, states[0]), (true, states[1])] {
        let begun = Instant::now();
        let change = async |(at, driver): (usize, &Driver)| -> anyhow::Result<f64> {
            sleep_until(begun + Duration::from_secs(1) * u32::try_from(at)? / RATE).await;
            if end {
                succeed(client, &driver.pod).await?
            } else {
                run(client, &driver.pod).await?
            }
            let answered = Instant::now();
            let seen = seen.of(&(driver.id.clone(), state.to_owned())).await;
            let seen = seen.with_context(|| format!("{} isn't {state}", driver.id))?;
            Ok(seen.saturating_duration_since(answered).as_secs_f64() * 1e3)
        };
        lag.extend(try_join_all(drivers.iter().enumerate().map(change)).await?);
    }
    let at = format!("pod's change until clients see it, {RATE} a second");
    table.put(Measure::less(format!("{at}: p50"), "ms"), peer, lag.median());
    table.put(Measure::less(format!("{at}: p99"), "ms"), peer, lag.quantile(0.99));
    Ok(())
}
