//! What people use today beside Sparkgate, one after the other on one machine: Spark's own master and its REST server,
//! spark-submit in a loop, and Kubeflow's operator. The last two create the same drivers as Sparkgate, on the same API
//! server.

mod gateway;
mod job;
mod lag;
mod master;
mod operator;
mod submit;
mod table;

use std::{thread::available_parallelism, time::Duration};

use sparkgate_testing::request::request;

use self::table::{Measure, Table};
use crate::{
    bench::{Bench, Name, Peer},
    load::{
        clients::{Calls, Seen, Server, clients, in_words},
        http::{Answer, Connection},
        kubernetes::Client,
        sightings::Sightings,
    },
    report::Report,
    samples::Samples,
    servers::Kubernetes,
};

/// Drivers of each peer that starts a JVM for each of them.
const JOBS: usize = 24;
/// Clients of the peers that have an HTTP API.
const CLIENTS: [usize; 2] = [1, 16];
/// Submissions whose status is read.
const READ: usize = 200;
/// Each turn of clients is this long, and each number of clients has so many turns.
const TURN: Duration = Duration::from_secs(1);
const TURNS: usize = 5;
/// Unmeasured turns before them, with 16 clients: a JVM compiles what it runs often.
const WARM_UP: usize = 8;
const PATH: &str = "/v1/submissions";

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Peers, bench);
    let mut table = Table::default();
    for _ in 0..bench.runs {
        let wanted = |peer| bench.peers.contains(&peer);
        if wanted(Peer::Master) {
            master::measure(bench, &mut table).await?;
        }
        if wanted(Peer::Sparkgate) {
            gateway::measure_accepting(bench, &mut table).await?;
        }
        let kubernetes = Kubernetes::start(bench).await?;
        if wanted(Peer::Submit) {
            submit::measure(bench, &kubernetes, &mut table).await?;
        }
        if wanted(Peer::Operator) {
            operator::measure(bench, &kubernetes, &mut table).await?;
        }
        if wanted(Peer::Sparkgate) {
            gateway::measure(bench, &kubernetes, &mut table).await?;
        }
    }
    table.add_to(&mut report);
    report.publish(bench)?;
    // In the page it takes the place of the report's.
    table.publish(bench)
}

/// Returns the processors of the machine, which is also the number of submissions in flight in a loop.
fn cores() -> anyhow::Result<usize> {
    Ok(available_parallelism()?.get())
}

/// Watches the driver pods of a namespace, by the numbers of their jobs.
async fn pods(client: &Client, namespace: &str) -> anyhow::Result<Sightings<usize>> {
    let path = format!("/api/v1/namespaces/{namespace}/pods?watch=true&labelSelector=spark-role%3Ddriver");
    // Only their metadata: each event of a whole pod would cost the API server and this program more.
    let format = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    Sightings::watch(client, &path, format, |pod: job::Pod| pod.number()).await
}

/// Measures accepting and reading through Spark's REST protocol. Between turns `clear` removes what is waiting, where
/// that would slow the server down.
async fn measure_protocol(
    bench: &Bench,
    server: impl Into<Server>,
    peer: Peer,
    table: &mut Table,
    clear: impl AsyncFn(&mut Connection) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let server = server.into();
    let mut connection = Connection::open(server.address).await?;
    let post = async |count: usize| {
        let turn =
            clients(server, count, turn(bench), async |connection, n| create(connection, n, "default").await).await;
        clear(&mut Connection::open(server.address).await?).await?;
        turn
    };
    for _ in 0..bench.size(WARM_UP) {
        post(CLIENTS[1]).await?;
    }
    for count in CLIENTS {
        let (mut seen, mut calls) = (Seen::default(), Calls::default());
        for _ in 0..TURNS {
            seen.add(post(count).await?);
        }
        calls.take(&seen);
        add(table, peer, "accepted", count, &calls);
    }
    let mut ids = Vec::new();
    for n in 0..READ {
        ids.push(job::submission_id(&create(&mut connection, n, "default").await?)?);
    }
    let read = async |count: usize, time: Duration| {
        let get = async |connection: &mut Connection, n: usize| {
            connection.get(&format!("{PATH}/status/{}", ids[n % ids.len()])).await
        };
        clients(server, count, time, get).await
    };
    read(CLIENTS[1], turn(bench) * 3).await?;
    for count in CLIENTS {
        let mut calls = Calls::default();
        calls.take(&read(count, turn(bench) * 3).await?);
        add(table, peer, "status read", count, &calls);
    }
    Ok(())
}

fn turn(bench: &Bench) -> Duration {
    if bench.quick { TURN / 10 } else { TURN }
}

async fn create(connection: &mut Connection, n: usize, namespace: &str) -> anyhow::Result<Answer> {
    connection.post(&format!("{PATH}/create"), request(n, namespace)).await
}

fn add(table: &mut Table, peer: Peer, what: &str, count: usize, calls: &Calls) {
    let clients = in_words(count);
    table.put(Measure::more(format!("{what}, {clients}"), "/s"), peer, calls.rate.median());
    table.put(Measure::less(format!("{what}, {clients}: p50"), "ms"), peer, calls.p50.median());
    table.put(Measure::less(format!("{what}, {clients}: p99"), "ms"), peer, calls.p99.median());
    table.put(Measure::less(format!("{what}, {clients}: CPU of the server"), "ms"), peer, calls.cpu.median());
}

/// Adds a closed loop of `jobs` jobs, as wide as the machine has processors: each client submits the next when its pod is there.
/// `until_pod` has the milliseconds of each.
fn add_loop(table: &mut Table, peer: Peer, jobs: usize, took: Duration, until_pod: &Samples) {
    let width = "loop as wide as the cores";
    table.put(Measure::more(format!("{width}: driver pods"), "/min"), peer, per_minute(jobs, took));
    let until = format!("{width}: request until its pod");
    table.put(Measure::less(format!("{until}, p50"), "ms"), peer, until_pod.median());
    table.put(Measure::less(format!("{until}, p99"), "ms"), peer, until_pod.quantile(0.99));
}

fn per_minute(jobs: usize, took: Duration) -> f64 {
    jobs as f64 * 60.0 / took.as_secs_f64()
}

/// Returns the milliseconds of each of `jobs` jobs.
fn each(time: Duration, jobs: usize) -> f64 {
    time.as_secs_f64() * 1e3 / jobs as f64
}

/// All at once.
fn burst_rate() -> Measure {
    Measure::more("all at once: driver pods", "/min")
}

/// Of all that the peer runs: its processes, those that it starts, and its database.
fn cpu_of_each() -> Measure {
    Measure::less("CPU of a submission", "ms")
}

fn cpu_of_servers() -> Measure {
    Measure::less("CPU of kube-apiserver and etcd for it", "ms")
}

fn idle_memory() -> Measure {
    Measure::less("memory when idle", "MB")
}

fn peak_memory() -> Measure {
    Measure::less("peak memory", "MB")
}
