//! What one submission costs the gateway from its POST until its pod's finalizer is removed, with TLS to the API server
//! and without it, and what it costs through spark-submit.

mod life;
mod plain;
mod spark_submit;

use std::{path::Path, time::Duration};

use self::plain::PlainProxy;
use super::launch::{Writes, prepared, submit, until_created};
use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    report::{Bar, Report},
    samples::Samples,
    servers::{Database, Kubernetes},
};

const JOBS: usize = 500;
const WARM_UP: usize = 50;
/// The bar is one millisecond where spark-submit takes 3.4 s of CPU time. On slow or shared processors both need more
/// CPU time.
const TIMES_LESS: f64 = 3400.0;

#[derive(Default)]
struct OfGateway {
    accept_and_launch: Samples,
    rest: Samples,
    all: Samples,
    memory: Samples,
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Cost, bench);
    let (mut with_tls, mut plain) = (OfGateway::default(), OfGateway::default());
    let (mut wall, mut cpu, mut memory) = (Samples::default(), Samples::default(), Samples::default());
    let (mut ours, mut theirs) = (Writes::default(), Writes::default());
    for _ in 0..bench.runs {
        let kubernetes = prepared(bench).await?;
        let once = spark_submit::submit(&kubernetes).await?;
        theirs = Writes::read(&kubernetes.audit_log(), 1)?;
        wall.push(once.ran.wall.as_secs_f64());
        cpu.push(once.cpu.as_secs_f64());
        memory.push(once.ran.memory);
        drop(kubernetes);

        let kubernetes = prepared(bench).await?;
        measure(bench, &kubernetes, &kubernetes.gateway_kubeconfig(), &mut with_tls).await?;
        ours = Writes::read(&kubernetes.audit_log(), WARM_UP + bench.size(JOBS))?;
        drop(kubernetes);

        let kubernetes = prepared(bench).await?;
        let proxy = PlainProxy::start(kubernetes.gateway_client().await?).await?;
        measure(bench, &kubernetes, &proxy.kubeconfig(), &mut plain).await?;
    }
    let unit = "ms CPU/submission";
    report.add("accept and launch", unit, &with_tls.accept_and_launch);
    report.add("running, end, finalizer removed", unit, &with_tls.rest);
    report.add("total", unit, &with_tls.all);
    report.add("without TLS: accept and launch", unit, &plain.accept_and_launch);
    report.add("without TLS: running, end, finalizer removed", unit, &plain.rest);
    report.add("without TLS: total", unit, &plain.all);
    report.add("peak memory", "MB", &with_tls.memory);
    report.add("spark-submit: until it exits", "s", &wall);
    report.add("spark-submit: CPU", "s", &cpu);
    report.add("spark-submit: peak memory", "MB", &memory);
    let ratio = |ours: &Samples| -> Samples { [cpu.median() * 1e3 / ours.median()].into_iter().collect() };
    report.add("ratio of spark-submit's CPU to ours, accept and launch", "×", &ratio(&with_tls.accept_and_launch));
    let whole = "ratio of spark-submit's CPU to ours, total without TLS";
    report.judge(whole, "×", &ratio(&plain.all), Bar::AtLeast(TIMES_LESS));
    for (whose, writes) in [("Sparkgate", ours), ("spark-submit", theirs)] {
        for (what, each) in writes.each_job() {
            report.add(format!("API writes of {whose}: {what}"), "/job", &[each].into_iter().collect());
        }
    }
    report.publish(bench)
}

async fn measure(
    bench: &Bench,
    kubernetes: &Kubernetes,
    kubeconfig: &Path,
    figures: &mut OfGateway,
) -> anyhow::Result<()> {
    let jobs = bench.size(JOBS);
    let database = Database::create(bench).await?;
    let directory = tempfile::tempdir()?;
    let gateway = Gateway::start(bench, directory.path(), database.url(), kubeconfig, &[]).await?;
    gateway.until_ready().await?;
    let client = kubernetes.client().await?;
    submit(&gateway, WARM_UP).await?;
    until_created(&database).await?;
    life::until_all_have_ended(&client, &database).await?;

    let each = |time: Duration| time.as_secs_f64() * 1e3 / jobs as f64;
    let begun = gateway.process().cpu()?;
    submit(&gateway, jobs).await?;
    until_created(&database).await?;
    let created = gateway.process().cpu()?;
    life::until_all_have_ended(&client, &database).await?;
    let ended = gateway.process().cpu()?;
    figures.accept_and_launch.push(each(created - begun));
    figures.rest.push(each(ended - created));
    figures.all.push(each(ended - begun));
    figures.memory.push(gateway.process().peak_memory()?);
    drop(gateway);
    database.drop_it().await
}
