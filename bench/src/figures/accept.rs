//! Durable creates per second, compared with Postgres alone writing the same rows on as many connections.

mod postgres;

use std::{path::PathBuf, time::Duration};

use postgres::Alone;
use sparkgate_testing::request::request;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    load::clients::{Calls, Seen, clients, in_words},
    report::{Bar, Report},
    samples::Samples,
    servers::{Database, kubeconfig},
};

const CLIENTS: [usize; 4] = [1, 16, 64, 256];
/// The number of connections for requests, out of the gateway's default of 16.
pub(super) const CONNECTIONS: usize = 7;
const WARM_UP: Duration = Duration::from_secs(1);
/// The number of turns for each number of clients. Postgres alone and the gateway alternate, because the disk's commit
/// latency changes from one second to the next.
const TURNS: usize = 5;
/// The pause before Postgres' turn, in which the gateway finishes what it does after its last reply.
const QUIET: Duration = Duration::from_millis(100);

#[derive(Default)]
struct Figures {
    own: Samples,
    own_alone: Samples,
    of: [OfClients; CLIENTS.len()],
}

#[derive(Default)]
struct OfClients {
    calls: Calls,
    share: Samples,
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Accept, bench);
    let mut figures = Figures::default();
    for _ in 0..bench.runs {
        once(bench, &mut figures).await?;
    }
    report.add("Postgres alone, 1 connection", "rows/s", &figures.own_alone);
    report.add(format!("Postgres alone, {CONNECTIONS} connections"), "rows/s", &figures.own);
    for (clients, of) in CLIENTS.into_iter().zip(&figures.of) {
        let clients = in_words(clients);
        report.add(format!("{clients}: accepted"), "/s", &of.calls.rate);
        report.judge(format!("{clients}: share of Postgres' own rate"), "", &of.share, Bar::AtLeast(0.5));
        report.add(format!("{clients}: p50"), "ms", &of.calls.p50);
        report.add(format!("{clients}: p99"), "ms", &of.calls.p99);
        report.add(format!("{clients}: CPU of the gateway"), "ms/submission", &of.calls.cpu);
    }
    report.publish(bench)
}

async fn once(bench: &Bench, figures: &mut Figures) -> anyhow::Result<()> {
    let turn = Duration::from_millis(bench.size(1000) as u64);
    let (database, beside) = (Database::migrated(bench).await?, Database::migrated(bench).await?);
    let mut alone = Alone::connect(&beside, CONNECTIONS).await?;
    let mut own = [Samples::default(), Samples::default()];

    let directory = tempfile::tempdir()?;
    let kubeconfig = nowhere(&directory)?;
    let gateway = Gateway::start(bench, directory.path(), database.url(), &kubeconfig, &[]).await?;
    load(&gateway, 16, WARM_UP).await?;
    for (clients, of) in CLIENTS.into_iter().zip(&mut figures.of) {
        let connections = clients.min(CONNECTIONS);
        let (mut seen, mut beside_it) = (Seen::default(), Samples::default());
        for _ in 0..TURNS {
            sleep(QUIET).await;
            beside_it.push(alone.rate(connections, turn).await?);
            seen.add(load(&gateway, clients, turn).await?);
        }
        of.share.push(seen.rate() / beside_it.mean());
        of.calls.take(&seen);
        own[usize::from(clients > 1)].extend(beside_it.values().iter().copied());
    }
    drop((gateway, alone));
    figures.own_alone.push(own[0].mean());
    figures.own.push(own[1].mean());
    beside.drop_it().await?;
    database.drop_it().await
}

/// Runs `count` clients, each posting one request after the other.
async fn load(gateway: &Gateway, count: usize, time: Duration) -> anyhow::Result<Seen> {
    clients(gateway, count, time, async |connection, n| {
        connection.post("/v1/submissions/create", request(n, "default")).await
    })
    .await
}

/// Returns a kubeconfig of a cluster that doesn't answer: accepted submissions stay queued, so only accepting is
/// measured.
pub(super) fn nowhere(directory: &TempDir) -> anyhow::Result<PathBuf> {
    kubeconfig::write(directory.path(), "https://127.0.0.1:1", None, "none")
}
