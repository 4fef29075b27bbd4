//! Whole submissions a second, from the first POST until all objects of the last one are there, beside a client that does
//! nothing but create the same objects.

mod audit;
mod bare;

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use anyhow::ensure;
use futures::future::try_join_all;
use tokio::time::sleep;

pub(super) use self::audit::Writes;
use super::request::request;
use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    load::http::Connection,
    report::{Bar, Report},
    samples::Samples,
    servers::{Database, Kubernetes},
    stopwatch::{Lap, Stopwatch},
};

const JOBS: [usize; 2] = [1000, 6000];
/// As in the benchmark of the Kubeflow Spark operator.
pub(super) const NAMESPACES: [&str; 3] = ["team-a", "team-b", "team-c"];
/// Jobs that are on their way at once, on either side.
const AT_ONCE: usize = 96;
/// How often it is looked whether all are there.
const LOOK: Duration = Duration::from_millis(50);
/// Both the API server and the gateway have run a little before it counts.
const WARM_UP: usize = 100;

#[derive(Default)]
struct OfJobs {
    bare: Samples,
    rate: Samples,
    share: Samples,
    share_by_the_clock: Samples,
    bare_stolen: Samples,
    stolen: Samples,
    accepted_in: Samples,
    bare_api_cpu: Samples,
    api_cpu: Samples,
    cpu: Samples,
    postgres_cpu: Samples,
    memory: Samples,
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Launch, bench);
    let mut writes = Writes::default();
    for jobs in JOBS {
        let count = bench.size(jobs);
        let mut of = OfJobs::default();
        for _ in 0..bench.runs {
            let bare = without_gateway(bench, count).await?;
            let launched = with_gateway(bench, count).await?;
            let each = |time: Duration| time.as_secs_f64() * 1e3 / count as f64;
            of.bare.push(bare.lap.rate(count));
            of.bare_api_cpu.push(each(bare.api_cpu));
            of.rate.push(launched.lap.rate(count));
            of.share.push(launched.lap.rate_of_given(count) / bare.lap.rate_of_given(count));
            of.share_by_the_clock.push(launched.lap.rate(count) / bare.lap.rate(count));
            of.bare_stolen.push(bare.lap.stolen * 100.0);
            of.stolen.push(launched.lap.stolen * 100.0);
            of.api_cpu.push(each(launched.api_cpu));
            of.postgres_cpu.push(each(launched.postgres_cpu));
            of.accepted_in.push(launched.accepted_in.as_secs_f64());
            of.cpu.push(each(launched.cpu));
            of.memory.push(launched.memory);
            writes = launched.writes;
        }
        report.add(format!("{jobs} jobs: a bare client"), "submissions/s", &of.bare);
        report.add(format!("{jobs} jobs: Sparkgate"), "submissions/s", &of.rate);
        let share = format!("{jobs} jobs: of the bare client's rate, in the time that each was given");
        report.judge(share, "", &of.share, Bar::AtLeast(0.9));
        report.add(format!("{jobs} jobs: the same by the clock"), "", &of.share_by_the_clock);
        report.add(format!("{jobs} jobs: kept by the hypervisor, under the bare client"), "%", &of.bare_stolen);
        report.add(format!("{jobs} jobs: the same, under Sparkgate"), "%", &of.stolen);
        report.add(format!("{jobs} jobs: all accepted within"), "s", &of.accepted_in);
        let unit = "ms/submission";
        report.add(
            format!("{jobs} jobs: CPU of kube-apiserver and etcd, under the bare client"),
            unit,
            &of.bare_api_cpu,
        );
        report.add(format!("{jobs} jobs: the same, under Sparkgate"), unit, &of.api_cpu);
        report.add(format!("{jobs} jobs: CPU of Postgres"), unit, &of.postgres_cpu);
        report.add(format!("{jobs} jobs: CPU of the gateway"), unit, &of.cpu);
        report.add(format!("{jobs} jobs: its memory at most"), "MB", &of.memory);
    }
    for (what, each) in writes.each_job() {
        report.add(format!("API writes: {what}"), "/job", &[each].into_iter().collect());
    }
    report.publish(bench)
}

struct Bare {
    lap: Lap,
    api_cpu: Duration,
}

async fn without_gateway(bench: &Bench, jobs: usize) -> anyhow::Result<Bare> {
    let kubernetes = prepared(bench).await?;
    let client = kubernetes.client().await?;
    bare::launch(&client, WARM_UP).await?;
    let rendered = bare::rendered(jobs)?;
    let (watch, before) = (Stopwatch::start(), kubernetes.cpu()?);
    bare::launch_all(&client, rendered).await?;
    Ok(Bare { lap: watch.lap(), api_cpu: kubernetes.cpu()? - before })
}

struct Launched {
    lap: Lap,
    accepted_in: Duration,
    api_cpu: Duration,
    postgres_cpu: Duration,
    cpu: Duration,
    memory: f64,
    writes: Writes,
}

async fn with_gateway(bench: &Bench, jobs: usize) -> anyhow::Result<Launched> {
    let kubernetes = prepared(bench).await?;
    let database = Database::create(bench).await?;
    let directory = tempfile::tempdir()?;
    let kubeconfig = kubernetes.kubeconfig();
    let gateway = Gateway::start(bench, directory.path(), database.url(), &kubeconfig, &[]).await?;
    gateway.until_ready().await?;
    submit(&gateway, WARM_UP).await?;
    until_created(&database).await?;

    let writes = Writes::read(&kubernetes.audit_log(), WARM_UP)?;
    let before = [gateway.process().cpu()?, kubernetes.cpu()?, database.cpu().await?];
    let watch = Stopwatch::start();
    submit(&gateway, jobs).await?;
    let accepted_in = watch.lap().elapsed;
    until_created(&database).await?;
    let lap = watch.lap();
    let now = [gateway.process().cpu()?, kubernetes.cpu()?, database.cpu().await?];
    let [cpu, api_cpu, postgres_cpu] = std::array::from_fn(|n| now[n].saturating_sub(before[n]));
    let memory = gateway.process().peak_memory()?;
    let writes = Writes::read(&kubernetes.audit_log(), WARM_UP + jobs)?.since(&writes);
    drop(gateway);
    database.drop_it().await?;
    Ok(Launched { lap, accepted_in, api_cpu, postgres_cpu, cpu, memory, writes })
}

/// A cluster with the namespaces.
pub(super) async fn prepared(bench: &Bench) -> anyhow::Result<Kubernetes> {
    let kubernetes = Kubernetes::start(bench).await?;
    let client = kubernetes.client().await?;
    for name in NAMESPACES {
        let namespace = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        client.post("/api/v1/namespaces", namespace.to_string()).await?;
    }
    Ok(kubernetes)
}

/// Posts jobs as fast as they are taken.
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
            let answer = connection.post("/v1/submissions/create", body).await?;
            ensure!(answer.status == 200, "{}: {}", answer.status, String::from_utf8_lossy(&answer.body));
        }
    };
    try_join_all((0..AT_ONCE).map(|_| client())).await.map(drop)
}

/// Waits until nothing is left to create; then all of it is there, or was refused.
pub(super) async fn until_created(database: &Database) -> anyhow::Result<()> {
    let mut connection = database.connect().await?;
    // Not by reading the table again and again.
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
