//! spark-submit in a loop as wide as the machine has processors.

use std::ops::Range;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::time::Instant;

use super::{
    JOBS, add_loop, cores, each,
    job::Job,
    per_minute, pods,
    table::{Measure, Table},
};
use crate::{
    bench::{Bench, Peer},
    figures::spark_submit::{run, spark_submit},
    load::sightings::Sightings,
    process::cpu_of_ended_children,
    samples::Samples,
    servers::Kubernetes,
};

const NAMESPACE: &str = "by-submit";

struct Loop<'a> {
    kubernetes: &'a Kubernetes,
    pods: Sightings<usize>,
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
    client.create_namespace(NAMESPACE).await?;
    let of = Loop { kubernetes, pods: pods(&client, NAMESPACE).await? };
    let (cores, jobs) = (cores()?, bench.size(JOBS));
    // The first processes read Spark's jars from the disk.
    of.submit(0..cores, cores).await?;
    let (cpu, servers, begun) = (cpu_of_ended_children()?, kubernetes.cpu()?, Instant::now());
    let all = of.submit(cores..cores + jobs, cores).await?;
    let took = begun.elapsed();
    let (cpu, servers) = (cpu_of_ended_children()? - cpu, kubernetes.cpu()? - servers);
    let until_pod: Samples = all.iter().map(|once| once.until_pod).collect();
    let memory: Samples = all.iter().map(|once| once.memory).collect();
    add_loop(table, Peer::Submit, jobs, took, &until_pod);
    let mut put = |measure, value| table.put(measure, Peer::Submit, value);
    // More of them at once are no faster: they keep all processors busy.
    put(super::burst_rate(), per_minute(jobs, took));
    put(super::cpu_of_each(), each(cpu, jobs));
    put(super::cpu_of_servers(), each(servers, jobs));
    put(Measure::less("peak memory, of one process", "MB"), memory.max());
    put(super::peak_memory(), memory.max() * cores as f64);
    Ok(())
}

impl Loop<'_> {
    /// Submits jobs, so many at once.
    async fn submit(&self, numbers: Range<usize>, width: usize) -> anyhow::Result<Vec<Once>> {
        stream::iter(numbers).map(|n| self.once(n)).buffer_unordered(width).try_collect().await
    }

    /// Runs spark-submit until it exits.
    async fn once(&self, n: usize) -> anyhow::Result<Once> {
        let mut command = spark_submit(self.kubernetes)?;
        let master = format!("k8s://{}", self.kubernetes.url());
        command.args(Job::new(n, NAMESPACE)?.arguments(&master)).env("SPARK_USER", "etl");
        let ran = run(command).await?;
        let until_pod = (self.pods.of(&n).await? - ran.begun).as_secs_f64() * 1e3;
        Ok(Once { until_pod, memory: ran.memory })
    }
}
