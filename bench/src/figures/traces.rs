//! Durable creates per second of a gateway that records and exports a trace of each request, compared with one without traces. The
//! two alternate.

use std::time::Duration;

use sparkgate_testing::request::request;
use tempfile::TempDir;
use tokio::time::sleep;

use super::accept::nowhere;
use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    load::clients::{Calls, Seen, clients, in_words},
    report::{Bar, Report},
    samples::Samples,
    servers::{Collector, Database},
};

const CLIENTS: [usize; 3] = [1, 16, 64];
const WARM_UP: Duration = Duration::from_secs(1);
/// The number of turns of each gateway for each number of clients.
const TURNS: usize = 6;
/// The pause before a turn, in which a gateway finishes what it does after its last reply.
const QUIET: Duration = Duration::from_millis(100);
/// The share of the rate without traces.
const BAR: f64 = 0.97;

#[derive(Default)]
struct OfClients {
    without: Calls,
    with: Calls,
    /// The rate with traces, of that without.
    share: Samples,
    /// The CPU time with traces, of that without.
    cost: Samples,
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Traces, bench);
    let mut figures: [OfClients; CLIENTS.len()] = Default::default();
    for _ in 0..bench.runs {
        once(bench, &mut figures).await?;
    }
    for (clients, of) in CLIENTS.into_iter().zip(&figures) {
        let clients = in_words(clients);
        for (which, calls) in [("without traces", &of.without), ("with traces", &of.with)] {
            report.add(format!("{clients}, {which}: accepted"), "/s", &calls.rate);
            report.add(format!("{clients}, {which}: p99"), "ms", &calls.p99);
            report.add(format!("{clients}, {which}: CPU of the gateway"), "ms/submission", &calls.cpu);
        }
        report.judge(format!("{clients}: share of the rate without traces"), "", &of.share, Bar::AtLeast(BAR));
        report.add(format!("{clients}: CPU time, of that without traces"), "×", &of.cost);
    }
    report.publish(bench)
}

async fn once(bench: &Bench, figures: &mut [OfClients]) -> anyhow::Result<()> {
    let turn = Duration::from_millis(bench.size(1000) as u64);
    let (plain, traced) = (Database::migrated(bench).await?, Database::migrated(bench).await?);
    let directories = [tempfile::tempdir()?, tempfile::tempdir()?];
    let collector = Collector::start().await?;
    let without = start(bench, &directories[0], &plain, &[]).await?;
    let with = start(bench, &directories[1], &traced, &["--otlp-endpoint", collector.url()]).await?;
    let both = [&without, &with];
    for gateway in both {
        load(gateway, 16, WARM_UP).await?;
    }
    for (clients, of) in CLIENTS.into_iter().zip(figures) {
        let mut seen: [Seen; 2] = Default::default();
        for number in 0..TURNS {
            // Each comes first in half of the turns.
            for which in [number % 2, (number + 1) % 2] {
                sleep(QUIET).await;
                seen[which].add(load(both[which], clients, turn).await?);
            }
        }
        let [without, with] = &seen;
        of.share.push(with.rate() / without.rate());
        of.cost.push(with.cpu_of_each() / without.cpu_of_each());
        of.without.take(without);
        of.with.take(with);
    }
    drop((without, with));
    plain.drop_it().await?;
    traced.drop_it().await
}

async fn start(bench: &Bench, directory: &TempDir, database: &Database, options: &[&str]) -> anyhow::Result<Gateway> {
    Gateway::start(bench, directory.path(), database.url(), &nowhere(directory)?, options).await
}

/// Runs `count` clients, each posting one request after the other.
async fn load(gateway: &Gateway, count: usize, time: Duration) -> anyhow::Result<Seen> {
    clients(gateway, count, time, async |connection, n| {
        connection.post("/v1/submissions/create", request(n, "default")).await
    })
    .await
}
