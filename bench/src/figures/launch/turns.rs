//! One run: the bare client and the gateway take turns launching the same number of jobs on the same API server.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    Writes, bare, prepared,
    side::{Cpu, Side},
    submit, until_created,
};
use crate::{
    bench::Bench,
    gateway::Gateway,
    load::kubernetes::Client,
    process::Process,
    samples::Samples,
    servers::{Database, Kubernetes},
    stopwatch::Stopwatch,
};

/// Jobs launched before the measurement, to warm up the API server and the gateway.
const WARM_UP: usize = 100;
/// The pause in which one side's remaining work ends before the other side's turn.
const QUIET: Duration = Duration::from_secs(1);

/// The measurements of one run.
pub(super) struct Taken {
    pub(super) bare: Side,
    pub(super) ours: Side,
    /// Seconds until all jobs were accepted, per turn.
    pub(super) accepted_in: Samples,
    /// Memory of the gateway in MB.
    pub(super) memory: f64,
    /// API writes of the gateway in its last turn.
    pub(super) writes: Writes,
}

struct Parts {
    kubernetes: Kubernetes,
    database: Database,
    gateway: Gateway,
    client: Client,
}

pub(super) async fn take_turns(bench: &Bench, jobs: usize, turns: usize) -> anyhow::Result<Taken> {
    let kubernetes = prepared(bench).await?;
    let client = kubernetes.gateway_client().await?;
    let database = Database::create(bench).await?;
    let directory = tempfile::tempdir()?;
    let gateway =
        Gateway::start(bench, directory.path(), database.url(), &kubernetes.gateway_kubeconfig(), &[]).await?;
    gateway.until_ready().await?;
    let parts = Parts { kubernetes, database, gateway, client };
    bare::launch(&parts.client, WARM_UP).await?;
    submit(&parts.gateway, WARM_UP).await?;
    until_created(&parts.database).await?;

    let (mut bare, mut ours) = (Side::default(), Side::default());
    let (mut accepted_in, mut before) = (Samples::default(), Writes::default());
    for turn in 1..=turns {
        sleep(QUIET).await;
        parts.without_gateway(jobs, &mut bare).await?;
        sleep(QUIET).await;
        if turn == turns {
            before = Writes::read(&parts.kubernetes.audit_log(), 0)?;
        }
        accepted_in.push(parts.with_gateway(jobs, &mut ours).await?.as_secs_f64());
    }
    let writes = Writes::read(&parts.kubernetes.audit_log(), jobs)?.since(&before);
    let memory = parts.gateway.process().peak_memory()?;
    drop(parts.gateway);
    parts.database.drop_it().await?;
    Ok(Taken { bare, ours, accepted_in, memory, writes })
}

impl Parts {
    async fn without_gateway(&self, jobs: usize, side: &mut Side) -> anyhow::Result<()> {
        let rendered = bare::rendered(jobs)?;
        let (before, watch) = (self.cpu().await?, Stopwatch::start());
        bare::launch_all(&self.client, rendered).await?;
        let lap = watch.lap();
        let [api, _, _, harness] = self.cpu_since(before).await?;
        // The gateway is idle.
        side.add(jobs, lap, [api, Duration::ZERO, Duration::ZERO, harness]);
        Ok(())
    }

    /// Returns how long it took until all jobs were accepted.
    async fn with_gateway(&self, jobs: usize, side: &mut Side) -> anyhow::Result<Duration> {
        let (before, watch) = (self.cpu().await?, Stopwatch::start());
        submit(&self.gateway, jobs).await?;
        let accepted_in = watch.lap().elapsed;
        until_created(&self.database).await?;
        let lap = watch.lap();
        side.add(jobs, lap, self.cpu_since(before).await?);
        Ok(accepted_in)
    }

    async fn cpu(&self) -> anyhow::Result<Cpu> {
        let harness = Process(std::process::id());
        Ok([self.kubernetes.cpu()?, self.database.cpu().await?, self.gateway.process().cpu()?, harness.cpu()?])
    }

    async fn cpu_since(&self, before: Cpu) -> anyhow::Result<Cpu> {
        let now = self.cpu().await?;
        Ok(std::array::from_fn(|part| now[part].saturating_sub(before[part])))
    }
}
