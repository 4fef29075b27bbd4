//! spark-submit in a loop as wide as the machine has processors.

use std::{
    fs::File,
    process::Stdio,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use anyhow::{Context, ensure};
use futures::future::try_join_all;
use tokio::{
    process::Command,
    time::{Instant, sleep},
};

use super::{
    JOBS, cores, create_namespace,
    job::Job,
    pods,
    table::{Measure, Table},
};
use crate::{
    bench::{Bench, Peer},
    load::sightings::Sightings,
    process::{Process, cpu_of_ended_children},
    samples::Samples,
    servers::{Kubernetes, spark_home},
};

const NAMESPACE: &str = "by-submit";
/// How often the memory of a process is read.
const LOOK: Duration = Duration::from_millis(50);

struct Loop<'a> {
    kubernetes: &'a Kubernetes,
    pods: Sightings<usize>,
    next: AtomicUsize,
}

/// One submission.
struct Once {
    /// Milliseconds from the start of the process until the pod was seen.
    until_pod: f64,
    /// Peak memory in MB.
    memory: f64,
}

pub(super) async fn measure(bench: &Bench, kubernetes: &Kubernetes, table: &mut Table) -> anyhow::Result<()> {
    let client = kubernetes.client().await?;
    create_namespace(&client, NAMESPACE).await?;
    let of = Loop { kubernetes, pods: pods(&client, NAMESPACE).await?, next: AtomicUsize::new(0) };
    // The first processes read Spark's jars from the disk.
    of.submit(cores()?).await?;
    let jobs = bench.size(JOBS);
    let (cpu, servers, begun) = (cpu_of_ended_children()?, kubernetes.cpu()?, Instant::now());
    let all = of.submit(jobs).await?;
    let took = begun.elapsed();
    let each = |time: Duration| time.as_secs_f64() * 1e3 / jobs as f64;
    let (cpu, servers) = (each(cpu_of_ended_children()? - cpu), each(kubernetes.cpu()? - servers));
    let until_pod: Samples = all.iter().map(|once| once.until_pod).collect();
    let memory: Samples = all.iter().map(|once| once.memory).collect();
    let mut put = |measure, value| table.put(measure, Peer::Submit, value);
    put(super::loop_rate(), jobs as f64 * 60.0 / took.as_secs_f64());
    put(super::loop_p50(), until_pod.median());
    put(super::loop_p99(), until_pod.quantile(0.99));
    // More of them at once are no faster: they keep all processors busy.
    put(super::burst_rate(), jobs as f64 * 60.0 / took.as_secs_f64());
    put(super::cpu_of_each(), cpu);
    put(super::cpu_of_servers(), servers);
    put(Measure::less("peak memory, of one process", "MB"), memory.max());
    put(super::peak_memory(), memory.max() * cores()? as f64);
    Ok(())
}

impl Loop<'_> {
    /// Submits `jobs` jobs, each client one after the other.
    async fn submit(&self, jobs: usize) -> anyhow::Result<Vec<Once>> {
        let end = self.next.load(Relaxed) + jobs;
        let client = async || -> anyhow::Result<Vec<Once>> {
            let mut all = Vec::new();
            loop {
                let n = self.next.fetch_add(1, Relaxed);
                if n >= end {
                    return Ok(all);
                }
                all.push(self.once(n).await?);
            }
        };
        let all = try_join_all((0..cores()?).map(|_| client())).await?;
        self.next.store(end, Relaxed);
        Ok(all.into_iter().flatten().collect())
    }

    /// Runs spark-submit until it exits.
    async fn once(&self, n: usize) -> anyhow::Result<Once> {
        let arguments = Job::new(n, NAMESPACE)?.arguments(&format!("k8s://{}", self.kubernetes.url()));
        let directory = tempfile::tempdir()?;
        let log = directory.path().join("log");
        let mut command = Command::new(spark_home()?.join("bin/spark-submit"));
        command.args(arguments).env("KUBECONFIG", self.kubernetes.kubeconfig()).env("SPARK_USER", "etl");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&log)?).kill_on_drop(true);
        let begun = Instant::now();
        let mut child = command.spawn().context("starting spark-submit")?;
        // The scripts exec the JVM, so the process id stays the same.
        let process = child.id().map(Process).context("it has just started")?;
        let mut memory = 0.0;
        let status = loop {
            memory = process.peak_memory().unwrap_or_default().max(memory);
            tokio::select! {
                status = child.wait() => break status?,
                () = sleep(LOOK) => {}
            }
        };
        ensure!(status.success(), "spark-submit: {status}: {}", std::fs::read_to_string(&log).unwrap_or_default());
        let until_pod = (self.pods.of(&n).await? - begun).as_secs_f64() * 1e3;
        Ok(Once { until_pod, memory })
    }
}
