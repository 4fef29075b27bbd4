//! Sparkgate with a Postgres that syncs to disk.

use std::{
    ops::Range,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context, ensure};
use futures::future::try_join_all;
use serde::Deserialize;
use sparkgate::cluster::labels::SUBMISSION_ID;
use tokio::time::{Instant, sleep};

use super::{
    JOBS, add_loop, cores, create, each,
    job::Pod,
    lag::{self, Driver},
    measure_protocol, per_minute, pods,
    table::{Measure, Table},
};
use crate::{
    bench::{Bench, Peer},
    figures::accept::nowhere,
    gateway::Gateway,
    load::{events::Events, http::Connection, kubernetes::Client, sightings::Sightings},
    samples::Samples,
    servers::{Database, Kubernetes},
};

const NAMESPACE: &str = "by-gateway";
/// Drivers of the loop, and those that are submitted together.
const LOOP: usize = 400;
const BURST: usize = 1000;
/// Clients that post the burst.
const AT_ONCE: usize = 96;
/// The pause in which work on the last driver ends.
const QUIET: Duration = Duration::from_secs(2);

/// Measures accepting and reading where nothing is launched: its cluster doesn't answer.
pub(super) async fn measure_accepting(bench: &Bench, table: &mut Table) -> anyhow::Result<()> {
    let (database, directory) = (Database::migrated(bench).await?, tempfile::tempdir()?);
    let gateway = Gateway::start(bench, directory.path(), database.url(), &nowhere(&directory)?, &[]).await?;
    measure_protocol(bench, &gateway, Peer::Sparkgate, table, async |_| Ok(())).await?;
    let memory = gateway.process().peak_memory()?;
    table.put(Measure::less("peak memory while accepting", "MB"), Peer::Sparkgate, memory);
    drop(gateway);
    database.drop_it().await
}

/// What was seen of a burst or a loop.
#[derive(Default)]
struct Posted {
    /// Milliseconds until a POST was answered, and until its pod was seen.
    accepted: Samples,
    until_pod: Samples,
}

struct Submissions {
    gateway: Gateway,
    pods: Sightings<usize>,
}

pub(super) async fn measure(bench: &Bench, kubernetes: &Kubernetes, table: &mut Table) -> anyhow::Result<()> {
    let client = kubernetes.client().await?;
    client.create_namespace(NAMESPACE).await?;
    let (database, directory) = (Database::create(bench).await?, tempfile::tempdir()?);
    let kubeconfig = kubernetes.gateway_kubeconfig();
    // There is no kubelet that could serve logs.
    let options = ["--kept-log", "off"];
    let gateway = Gateway::start(bench, directory.path(), database.url(), &kubeconfig, &options).await?;
    gateway.until_ready().await?;
    let of = Submissions { gateway, pods: pods(&client, NAMESPACE).await? };
    let (cores, in_loop, burst) = (cores()?, bench.size(LOOP), bench.size(BURST));
    let process = of.gateway.process();
    of.post(0..in_loop / 4, cores, true).await?;
    sleep(QUIET).await;
    table.put(super::idle_memory(), Peer::Sparkgate, process.memory()?);

    let (first, begun) = (in_loop / 4, Instant::now());
    let posted = of.post(first..first + in_loop, cores, true).await?;
    add_loop(table, Peer::Sparkgate, in_loop, begun.elapsed(), &posted.until_pod);
    sleep(QUIET).await;

    let (first, all) = (first + in_loop, first + in_loop + burst);
    let cpu = async || -> anyhow::Result<_> { Ok((process.cpu()?, database.cpu().await?, kubernetes.cpu()?)) };
    let (before, begun) = (cpu().await?, Instant::now());
    let posted = of.post(first..all, AT_ONCE, false).await?;
    let last = of.pods.last_of(burst, |n| *n >= first).await?;
    let mut put = |measure, value| table.put(measure, Peer::Sparkgate, value);
    put(super::burst_rate(), per_minute(burst, last - begun));
    sleep(QUIET).await;
    let after = cpu().await?;
    let each = |after: Duration, before| each(after.saturating_sub(before), burst);
    put(super::cpu_of_each(), each(after.0, before.0) + each(after.1, before.1));
    put(super::cpu_of_servers(), each(after.2, before.2));
    put(super::peak_memory(), process.peak_memory()?);
    put(Measure::less("memory of Postgres' connections", "MB"), database.memory().await?);
    put(
        Measure::less(format!("accepted while drivers launch, {AT_ONCE} clients: p50"), "ms"),
        posted.accepted.median(),
    );
    put(
        Measure::less(format!("accepted while drivers launch, {AT_ONCE} clients: p99"), "ms"),
        posted.accepted.quantile(0.99),
    );

    // As many as the operator has.
    let drivers = drivers(&client, cores + 2 * bench.size(JOBS)).await?;
    let seen = Sightings::events(Events::follow(of.gateway.address).await?);
    lag::measure(&client, &drivers, &seen, ["RUNNING", "FINISHED"], Peer::Sparkgate, table).await?;
    drop(of);
    database.drop_it().await
}

impl Submissions {
    /// Posts the jobs with `clients` clients, which may wait for the pod of each before the next.
    async fn post(&self, numbers: Range<usize>, clients: usize, wait: bool) -> anyhow::Result<Posted> {
        let next = AtomicUsize::new(numbers.start);
        let client = async || -> anyhow::Result<Posted> {
            let (mut connection, mut posted) = (Connection::open(self.gateway.address).await?, Posted::default());
            loop {
                let n = next.fetch_add(1, Relaxed);
                if n >= numbers.end {
                    return Ok(posted);
                }
                let sent = Instant::now();
                let answer = create(&mut connection, n, NAMESPACE).await?;
                ensure!(answer.status == 200, "{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
                posted.accepted.push(sent.elapsed().as_secs_f64() * 1e3);
                if wait {
                    posted.until_pod.push((self.pods.of(&n).await? - sent).as_secs_f64() * 1e3);
                }
            }
        };
        let mut all = Posted::default();
        for posted in try_join_all((0..clients).map(|_| client())).await? {
            all.accepted.extend(posted.accepted.values().iter().copied());
            all.until_pod.extend(posted.until_pod.values().iter().copied());
        }
        Ok(all)
    }
}

/// Returns some drivers that wait to run.
async fn drivers(client: &Client, count: usize) -> anyhow::Result<Vec<Driver>> {
    #[derive(Deserialize)]
    struct List {
        items: Vec<Pod>,
    }
    let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let list = client.get(&format!("{pods}?limit={count}")).await?;
    let List { items } = serde_json::from_slice(&list).context("reading a list of pods")?;
    let driver = |pod: &Pod| Driver { id: pod.label(SUBMISSION_ID).to_owned(), pod: format!("{pods}/{}", pod.name()) };
    Ok(items.iter().map(driver).collect())
}
