//! Durable creates a second, beside what Postgres alone does with the same rows on as many connections.

mod postgres;

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use anyhow::ensure;
use futures::future::try_join_all;
use sparkgate::store::{DatabaseSettings, Store};
use tempfile::TempDir;
use tokio::time::Instant;

use super::request::request;
use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    load::http::Connection,
    report::{Bar, Report},
    samples::Samples,
    servers::Database,
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
    rate: Samples,
    share: Samples,
    p50: Samples,
    p99: Samples,
    cpu: Samples,
}

/// What clients saw.
struct Seen {
    rate: f64,
    milliseconds: Samples,
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut figures = Figures::default();
    for _ in 0..bench.runs {
        once(bench, &mut figures).await?;
    }
    let mut report = Report::new(Name::Accept, bench);
    report.add("Postgres alone, 1 connection", "rows/s", &figures.own_alone);
    report.add(format!("Postgres alone, {CONNECTIONS} connections"), "rows/s", &figures.own);
    for (clients, of) in CLIENTS.into_iter().zip(&figures.of) {
        let clients = if clients == 1 { "1 client".to_owned() } else { format!("{clients} clients") };
        report.add(format!("{clients}: accepted"), "/s", &of.rate);
        report.judge(format!("{clients}: of Postgres' own rate"), "", &of.share, Bar::AtLeast(0.5));
        report.add(format!("{clients}: p50"), "ms", &of.p50);
        report.add(format!("{clients}: p99"), "ms", &of.p99);
        report.add(format!("{clients}: CPU of the gateway"), "ms/submission", &of.cpu);
    }
    report.publish(bench)
}

async fn once(bench: &Bench, figures: &mut Figures) -> anyhow::Result<()> {
    let time = Duration::from_millis(bench.size(5000) as u64);
    let database = Database::create(bench).await?;
    let settings = DatabaseSettings { url: database.url().to_owned(), max_connections: 3 };
    Store::connect(&settings).await?.close().await;

    let own_alone = postgres::rate(&database, 1, time).await?;
    let own = postgres::rate(&database, CONNECTIONS, time).await?;
    figures.own_alone.push(own_alone);
    figures.own.push(own);

    let directory = tempfile::tempdir()?;
    let kubeconfig = nowhere(&directory)?;
    let gateway = Gateway::start(bench, directory.path(), database.url(), &kubeconfig, &[]).await?;
    load(&gateway, 16, WARM_UP).await?;
    for (clients, of) in CLIENTS.into_iter().zip(&mut figures.of) {
        let before = gateway.process().cpu()?;
        let seen = load(&gateway, clients, time).await?;
        let cpu = gateway.process().cpu()? - before;
        of.rate.push(seen.rate);
        of.share.push(seen.rate / if clients == 1 { own_alone } else { own });
        of.p50.push(seen.milliseconds.median());
        of.p99.push(seen.milliseconds.quantile(0.99));
        of.cpu.push(cpu.as_secs_f64() * 1e3 / seen.milliseconds.len() as f64);
    }
    drop(gateway);
    database.drop_it().await
}

/// So many clients, each posting one after the other.
async fn load(gateway: &Gateway, clients: usize, time: Duration) -> anyhow::Result<Seen> {
    let number = AtomicUsize::new(0);
    let begun = Instant::now();
    let client = async || -> anyhow::Result<Samples> {
        let mut connection = Connection::open(gateway.address).await?;
        let mut milliseconds = Samples::default();
        while begun.elapsed() < time {
            let body = request(number.fetch_add(1, Relaxed), "default");
            let sent = Instant::now();
            let answer = connection.post("/v1/submissions/create", body).await?;
            milliseconds.push(sent.elapsed().as_secs_f64() * 1e3);
            ensure!(answer.status == 200, "{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        }
        Ok(milliseconds)
    };
    let all = try_join_all((0..clients).map(|_| client())).await?;
    let took = begun.elapsed().as_secs_f64();
    let milliseconds: Samples = all.iter().flat_map(|one| one.values()).copied().collect();
    Ok(Seen { rate: milliseconds.len() as f64 / took, milliseconds })
}

/// A cluster that doesn't answer: what is accepted waits for it, and nothing but accepting is measured.
pub(super) fn nowhere(directory: &TempDir) -> anyhow::Result<std::path::PathBuf> {
    let file = directory.path().join("kubeconfig");
    std::fs::write(
        &file,
        "{apiVersion: v1, kind: Config, current-context: it, clusters: [{name: it, cluster: {server: 'https://127.0.0.1:1'}}], \
         users: [{name: it, user: {token: none}}], contexts: [{name: it, context: {cluster: it, user: it}}]}",
    )?;
    Ok(file)
}
