//! Whole submissions per second, from the first POST until all objects of the last one exist, compared with a client
//! that only creates the same objects.

mod audit;
mod bare;
mod side;
mod turns;

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use anyhow::ensure;
use futures::future::try_join_all;
use tokio::time::sleep;

pub(super) use self::audit::Writes;
use sparkgate_testing::request::request;

use self::{side::Figures, turns::take_turns};
use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    load::http::Connection,
    report::{Bar, Report},
    samples::Samples,
    servers::{Database, Kubernetes},
};

/// Numbers of jobs submitted together, and how often. Repeated because the machine's speed varies within seconds and
/// the API server's garbage collector runs at any time.
const SIZES: [(usize, usize); 2] = [(1000, 5), (6000, 2)];
/// As in the benchmark of the Kubeflow Spark operator.
pub(super) const NAMESPACES: [&str; 3] = ["team-a", "team-b", "team-c"];
/// Jobs in flight on either side.
const AT_ONCE: usize = 96;
/// The interval at which the database is checked for remaining work.
const LOOK: Duration = Duration::from_millis(50);
/// How often a client retries a request that was answered with 503. While a hypervisor withholds the processors, no
/// database connection becomes free.
const PATIENCE: usize = 100;

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Launch, bench);
    let mut writes = Writes::default();
    for (jobs, turns) in SIZES {
        let (mut bare, mut ours) = (Figures::default(), Figures::default());
        let (mut share, mut by_the_clock, mut elsewhere) = (Samples::default(), Samples::default(), Samples::default());
        let (mut accepted_in, mut memory) = (Samples::default(), Samples::default());
        for _ in 0..bench.runs {
            let taken = take_turns(bench, bench.size(jobs), turns).await?;
            share.push(taken.ours.rate_of_given() / taken.bare.rate_of_given());
            by_the_clock.push(taken.ours.rate() / taken.bare.rate());
            elsewhere.push(taken.ours.rate_beside_postgres()? / taken.bare.rate_of_given());
            bare.push(&taken.bare);
            ours.push(&taken.ours);
            accepted_in.extend(taken.accepted_in.values().iter().copied());
            memory.push(taken.memory);
            writes = taken.writes;
        }
        let of = |what: &str| format!("{jobs} jobs: {what}");
        report.add(of("a bare client"), "submissions/s", &bare.rate);
        report.add(of("Sparkgate"), "submissions/s", &ours.rate);
        let what = of("share of the bare client's rate, without CPU steal");
        report.judge(what, "", &share, Bar::AtLeast(0.9));
        report.add(of("the same by wall-clock time"), "", &by_the_clock);
        report.add(of("the same without Postgres' CPU time"), "", &elsewhere);
        report.add(of("time until all are accepted"), "s", &accepted_in);
        for (whose, figures) in [("under the bare client", &bare), ("under Sparkgate", &ours)] {
            report.add(of(&format!("CPU steal, {whose}")), "%", &figures.stolen);
            for (part, cpu) in figures.cpu() {
                report.add(of(&format!("CPU of {part}, {whose}")), "ms/submission", cpu);
            }
        }
        report.add(of("peak memory of Sparkgate"), "MB", &memory);
    }
    for (what, each) in writes.each_job() {
        report.add(format!("API writes: {what}"), "/job", &[each].into_iter().collect());
    }
    report.publish(bench)
}

/// Starts a cluster with the namespaces.
pub(super) async fn prepared(bench: &Bench) -> anyhow::Result<Kubernetes> {
    let kubernetes = Kubernetes::start(bench).await?;
    let client = kubernetes.client().await?;
    for name in NAMESPACES {
        client.create_namespace(name).await?;
    }
    Ok(kubernetes)
}

/// Posts jobs as fast as they are accepted.
pub(super) async fn submit(gateway: &Gateway, jobs: usize) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let client = async || -> anyhow::Result<()> {
        let mut connection = Connection::open(gateway.address).await?;
        loop {
            let n = next.fetch_add(1, Relaxed);
            if n >= jobs {
                return Ok(());
            }
            let body = request(n, NAMESPACES[n % NAMESPACES.len()]);
            let mut answer = connection.post("/v1/submissions/create", body.clone()).await?;
            for _ in 0..PATIENCE {
                if answer.status != 503 {
                    break;
                }
                sleep(LOOK).await;
                answer = connection.post("/v1/submissions/create", body.clone()).await?;
            }
            ensure!(answer.status == 200, "{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        }
    };
    try_join_all((0..AT_ONCE).map(|_| client())).await.map(drop)
}

/// Waits until nothing is left to create. By then all objects exist or were refused.
pub(super) async fn until_created(database: &Database) -> anyhow::Result<()> {
    let mut connection = database.connect().await?;
    // Avoids a table scan on each poll.
    sqlx::query("SET enable_seqscan = off").execute(&mut connection).await?;
    let left = "SELECT EXISTS (SELECT FROM submissions WHERE state IN ('QUEUED', 'LAUNCHING'))";
    while sqlx::query_scalar::<_, bool>(left).fetch_one(&mut connection).await? {
        sleep(LOOK).await;
    }
    let refused = "SELECT count(*) FROM submissions WHERE state IN ('ERROR', 'FAILED', 'LOST')";
    let refused: i64 = sqlx::query_scalar(refused).fetch_one(&mut connection).await?;
    ensure!(refused == 0, "{refused} submissions were not launched");
    Ok(())
}
