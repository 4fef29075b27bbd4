//! Submissions accepted and launched per second, with queues and without. The two alternate.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context, ensure};
use futures::future::try_join_all;
use hyper::header::HeaderValue;
use sparkgate_testing::request::request;
use tokio::time::sleep;

use crate::{
    bench::Bench,
    figures::{
        accept::nowhere,
        access::api_key,
        launch::{NAMESPACES, prepared, until_created},
    },
    gateway::Gateway,
    load::{
        clients::{Seen, clients, in_words},
        http::Connection,
    },
    report::{Bar, Report},
    samples::Samples,
    servers::Database,
    stopwatch::Stopwatch,
};

const CLIENTS: [usize; 2] = [16, 64];
const WARM_UP: Duration = Duration::from_secs(1);
const TURNS: usize = 5;
/// Jobs that are launched in a turn, and in flight.
const JOBS: usize = 1000;
const AT_ONCE: usize = 64;
const QUIET: Duration = Duration::from_millis(200);
/// The share of the rate without queues.
const BAR: f64 = 0.95;
const TENANT: &str = "team";

/// Without queues, with queues.
const SIDES: [&str; 2] = ["without queues", "with queues"];
/// Few are admitted, and the others wait below a bound.
const FULL: &str = "queues:\n  night: {caps: {submissions: 20}, maxQueued: 1000000}\n";
/// All are admitted.
const OPEN: &str = "capacity: {cores: 1000000}\nqueues:\n  night: {caps: {submissions: 1000000}, maxQueued: 1000000}\n";

struct Side {
    gateway: Gateway,
    database: Database,
    key: HeaderValue,
    _directory: tempfile::TempDir,
}

pub(super) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let mut accepted: [[Samples; 2]; CLIENTS.len()] = Default::default();
    let mut share: [Samples; CLIENTS.len()] = Default::default();
    let (mut launched, mut of_launched): ([Samples; 2], _) = (Default::default(), Samples::default());
    for _ in 0..bench.runs {
        accept(bench, &mut accepted, &mut share).await?;
        launch(bench, &mut launched, &mut of_launched).await?;
    }
    for ((clients, rates), share) in CLIENTS.into_iter().zip(&accepted).zip(&share) {
        let clients = in_words(clients);
        for (side, rate) in SIDES.iter().zip(rates) {
            report.add(format!("{clients}, {side}: accepted"), "/s", rate);
        }
        report.judge(format!("{clients}: share of the rate without queues"), "", share, Bar::AtLeast(BAR));
    }
    for (side, rate) in SIDES.iter().zip(&launched) {
        report.add(format!("{JOBS} jobs, {side}: launched"), "/s", rate);
    }
    report.judge(format!("{JOBS} jobs: share of the rate without queues"), "", &of_launched, Bar::AtLeast(BAR));
    Ok(())
}

async fn start(bench: &Bench, kubeconfig: Option<PathBuf>, queues: &str) -> anyhow::Result<Side> {
    let (directory, database) = (tempfile::tempdir()?, Database::migrated(bench).await?);
    let kubeconfig = kubeconfig.map_or_else(|| nowhere(&directory), Ok)?;
    let access = access_file(directory.path(), queues)?;
    let options = ["--access-file", access.to_str().context("the path of a directory")?];
    let gateway = Gateway::start(bench, directory.path(), database.url(), &kubeconfig, &options).await?;
    let key = api_key(bench, &database, TENANT, "submitter")?;
    Ok(Side { gateway, database, key, _directory: directory })
}

fn access_file(directory: &Path, queues: &str) -> anyhow::Result<PathBuf> {
    let path = directory.join("access.yaml");
    let default = if queues.is_empty() { "" } else { ", defaultQueue: night" };
    let namespaces = NAMESPACES.join(", ");
    let text = format!(
        "authentication: {{}}\ntenants:\n  {TENANT}: {{namespaces: [{namespaces}]{default}}}\n\
         limits: {{writes: 1000000/s, reads: 1000000/s, bytes: 100GiB/s}}\n{queues}"
    );
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

async fn accept(
    bench: &Bench,
    accepted: &mut [[Samples; 2]; CLIENTS.len()],
    share: &mut [Samples; CLIENTS.len()],
) -> anyhow::Result<()> {
    let turn = Duration::from_millis(bench.size(1000) as u64);
    let sides = [start(bench, None, "").await?, start(bench, None, FULL).await?];
    for side in &sides {
        side.load(16, WARM_UP).await?;
    }
    for ((clients, rates), share) in CLIENTS.into_iter().zip(accepted).zip(share) {
        let mut seen: [Seen; 2] = Default::default();
        for number in 0..TURNS {
            // Each comes first in some turns.
            for at in [number % 2, (number + 1) % 2] {
                sleep(QUIET).await;
                seen[at].add(sides[at].load(clients, turn).await?);
            }
        }
        rates.iter_mut().zip(&seen).for_each(|(rate, seen)| rate.push(seen.rate()));
        share.push(seen[1].rate() / seen[0].rate());
    }
    end(sides).await
}

async fn launch(bench: &Bench, launched: &mut [Samples; 2], share: &mut Samples) -> anyhow::Result<()> {
    let kubernetes = [prepared(bench).await?, prepared(bench).await?];
    let mut sides = Vec::new();
    for (kubernetes, queues) in kubernetes.iter().zip(["", OPEN]) {
        let side = start(bench, Some(kubernetes.gateway_kubeconfig()), queues).await?;
        side.gateway.until_ready().await?;
        side.launch(100).await?;
        sides.push(side);
    }
    let (jobs, mut took) = (bench.size(JOBS), [Duration::ZERO; 2]);
    for number in 0..TURNS {
        for at in [number % 2, (number + 1) % 2] {
            sleep(QUIET).await;
            let watch = Stopwatch::start();
            sides[at].launch(jobs).await?;
            took[at] += watch.lap().given();
        }
    }
    let rates = took.map(|took| (jobs * TURNS) as f64 / took.as_secs_f64());
    launched.iter_mut().zip(rates).for_each(|(samples, rate)| samples.push(rate));
    share.push(rates[1] / rates[0]);
    end(sides).await
}

async fn end(sides: impl IntoIterator<Item = Side>) -> anyhow::Result<()> {
    for Side { gateway, database, .. } in sides {
        drop(gateway);
        database.drop_it().await?;
    }
    Ok(())
}

impl Side {
    async fn load(&self, count: usize, time: Duration) -> anyhow::Result<Seen> {
        clients(&self.gateway, count, time, async |connection, n| {
            let body = request(n, NAMESPACES[n % NAMESPACES.len()]);
            connection.post_as(Some(&self.key), "/v1/submissions/create", body).await
        })
        .await
    }

    /// Submits jobs, and waits until all of their objects exist.
    async fn launch(&self, jobs: usize) -> anyhow::Result<()> {
        let next = AtomicUsize::new(0);
        let client = async || -> anyhow::Result<()> {
            let mut connection = Connection::open(self.gateway.address).await?;
            loop {
                let n = next.fetch_add(1, Relaxed);
                if n >= jobs {
                    return Ok(());
                }
                let body = request(n, NAMESPACES[n % NAMESPACES.len()]);
                let answer = connection.post_as(Some(&self.key), "/v1/submissions/create", body).await?;
                ensure!(answer.status == 200, "{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
            }
        };
        try_join_all((0..AT_ONCE).map(|_| client())).await?;
        until_created(&self.database).await
    }
}
