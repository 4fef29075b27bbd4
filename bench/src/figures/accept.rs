//! Durable creates a second, beside what Postgres alone does with the same rows on as many connections.

mod postgres;

use std::{path::PathBuf, time::Duration};

use tempfile::TempDir;

use super::request::request;
use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    load::clients::{Calls, Seen, clients, in_words},
    report::{Bar, Report},
    samples::Samples,
    servers::{Database, kubeconfig},
};

const CLIENTS: [usize; 4] = [1, 16, 64, 256];
/// The gateway's default: 16, of which this many are for requests.
pub(super) const CONNECTIONS: usize = 7;
const WARM_UP: Duration = Duration::from_secs(1);

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
        report.judge(format!("{clients}: of Postgres' own rate"), "", &of.share, Bar::AtLeast(0.5));
        report.add(format!("{clients}: p50"), "ms", &of.calls.p50);
        report.add(format!("{clients}: p99"), "ms", &of.calls.p99);
        report.add(format!("{clients}: CPU of the gateway"), "ms/submission", &of.calls.cpu);
    }
    report.publish(bench)
}

async fn once(bench: &Bench, figures: &mut Figures) -> anyhow::Result<()> {
    let time = Duration::from_millis(bench.size(5000) as u64);
    let database = Database::migrated(bench).await?;

    let own_alone = postgres::rate(&database, 1, time).await?;
    let own = postgres::rate(&database, CONNECTIONS, time).await?;
    figures.own_alone.push(own_alone);
    figures.own.push(own);

    let directory = tempfile::tempdir()?;
    let kubeconfig = nowhere(&directory)?;
    let gateway = Gateway::start(bench, directory.path(), database.url(), &kubeconfig, &[]).await?;
    load(&gateway, 16, WARM_UP).await?;
    for (clients, of) in CLIENTS.into_iter().zip(&mut figures.of) {
        let seen = load(&gateway, clients, time).await?;
        of.share.push(seen.rate / if clients == 1 { own_alone } else { own });
        of.calls.take(&seen);
    }
    drop(gateway);
    database.drop_it().await
}

/// So many clients, each posting one after the other.
async fn load(gateway: &Gateway, count: usize, time: Duration) -> anyhow::Result<Seen> {
    clients(gateway, count, time, async |connection, n| {
        connection.post("/v1/submissions/create", request(n, "default")).await
    })
    .await
}

/// A cluster that doesn't answer: what is accepted waits for it, and nothing but accepting is measured.
pub(super) fn nowhere(directory: &TempDir) -> anyhow::Result<PathBuf> {
    kubeconfig::write(directory.path(), "https://127.0.0.1:1", None, "none")
}
