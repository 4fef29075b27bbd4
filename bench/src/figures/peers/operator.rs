//! Kubeflow's operator: each application is an object, for which it runs spark-submit.

use std::time::Duration;

use anyhow::Context;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

use super::{
    JOBS, add_loop, cores, each,
    job::Job,
    lag::{self, Driver},
    per_minute, pods,
    table::Table,
};
use crate::{
    bench::{Bench, Peer},
    load::{kubernetes::Client, sightings::Sightings},
    process::Process,
    samples::Samples,
    servers::{Kubernetes, Operator},
};

const NAMESPACE: &str = "by-operator";
const APPLICATIONS: &str = "/apis/sparkoperator.k8s.io/v1beta2/namespaces/by-operator/sparkapplications";
/// Applications that are created at once.
const AT_ONCE: usize = 8;
/// How often the memory is read. The kernel goes through all pages for it.
const LOOK: Duration = Duration::from_millis(500);
/// The longest time until all JVMs have ended.
const PATIENCE: Duration = Duration::from_secs(300);

struct Applications {
    client: Client,
    pods: Sightings<usize>,
    /// Applications with their states.
    states: Sightings<(String, String)>,
}

pub(super) async fn measure(bench: &Bench, kubernetes: &Kubernetes, table: &mut Table) -> anyhow::Result<()> {
    let client = kubernetes.client().await?;
    client.create_namespace(NAMESPACE).await?;
    let directory = tempfile::tempdir()?;
    let operator = Operator::start(kubernetes, directory.path(), NAMESPACE).await?;
    let measured = run(bench, kubernetes, client, &operator, table).await;
    measured.with_context(|| format!("Kubeflow's operator, whose log ends with\n{}", operator.log()))
}

async fn run(
    bench: &Bench,
    kubernetes: &Kubernetes,
    client: Client,
    operator: &Operator,
    table: &mut Table,
) -> anyhow::Result<()> {
    let of = Applications {
        pods: pods(&client, NAMESPACE).await?,
        states: Sightings::watch(&client, &format!("{APPLICATIONS}?watch=true"), "application/json", state).await?,
        client,
    };
    let (cores, jobs, process) = (cores()?, bench.size(JOBS), operator.process());
    of.at_width(0..cores, cores).await?;
    until_idle(process).await?;
    table.put(super::idle_memory(), Peer::Operator, process.memory_of_tree());

    let begun = Instant::now();
    let until_pod = of.at_width(cores..cores + jobs, cores).await?;
    let took = begun.elapsed();
    add_loop(table, Peer::Operator, jobs, took, &until_pod);
    until_idle(process).await?;

    let (cpu, servers, begun, peak) = (process.cpu_of_tree()?, kubernetes.cpu()?, Instant::now(), Peak::of(process));
    let (first, all) = (cores + jobs, cores + 2 * jobs);
    stream::iter(first..all).map(|n| of.create(n)).buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
    let last = of.pods.last_of(jobs, |n| *n >= first).await?;
    let mut put = |measure, value| table.put(measure, Peer::Operator, value);
    put(super::burst_rate(), per_minute(jobs, last - begun));
    until_idle(process).await?;
    put(super::cpu_of_each(), each(process.cpu_of_tree()? - cpu, jobs));
    put(super::cpu_of_servers(), each(kubernetes.cpu()? - servers, jobs));
    put(super::peak_memory(), peak.stop());

    of.states.last_of(all, |(_, state)| state == "SUBMITTED").await?;
    let drivers: Vec<_> = (0..all).map(|n| Driver { id: name(n), pod: pod(n) }).collect();
    lag::measure(&of.client, &drivers, &of.states, ["RUNNING", "COMPLETED"], Peer::Operator, table).await
}

impl Applications {
    /// Creates an application; returns when the request was sent.
    async fn create(&self, n: usize) -> anyhow::Result<Instant> {
        let application = Job::new(n, NAMESPACE)?.application(&name(n));
        let sent = Instant::now();
        self.client.post(APPLICATIONS, application).await?;
        Ok(sent)
    }

    /// Creates applications, so many at once that wait for their pods. Returns the milliseconds until each pod was seen.
    async fn at_width(&self, numbers: std::ops::Range<usize>, width: usize) -> anyhow::Result<Samples> {
        let once = async |n: usize| -> anyhow::Result<f64> {
            let sent = self.create(n).await?;
            Ok((self.pods.of(&n).await? - sent).as_secs_f64() * 1e3)
        };
        let all = stream::iter(numbers).map(once).buffer_unordered(width);
        Ok(all.try_collect::<Vec<_>>().await?.into_iter().collect())
    }
}

fn name(n: usize) -> String {
    format!("nightly-orders-{n}")
}

fn pod(n: usize) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods/{}-driver", name(n))
}

#[derive(Deserialize)]
struct Application {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    application_state: Option<State>,
}

#[derive(Deserialize)]
struct State {
    state: String,
}

fn state(application: Application) -> Option<(String, String)> {
    Some((application.metadata.name, application.status.application_state?.state))
}

/// Waits until the operator has no JVM.
async fn until_idle(operator: Process) -> anyhow::Result<()> {
    let idle = async {
        while operator.tree().len() > 1 {
            sleep(LOOK).await;
        }
    };
    timeout(PATIENCE, idle).await.with_context(|| format!("JVMs run after {PATIENCE:?}"))
}

/// The highest memory of a process with its descendants.
struct Peak(JoinHandle<()>, tokio::sync::watch::Receiver<f64>);

impl Peak {
    fn of(process: Process) -> Self {
        let (highest, receiver) = tokio::sync::watch::channel(0.0);
        let task = tokio::spawn(async move {
            loop {
                let memory = process.memory_of_tree();
                highest.send_modify(|highest| *highest = memory.max(*highest));
                sleep(LOOK).await;
            }
        });
        Self(task, receiver)
    }

    fn stop(self) -> f64 {
        self.0.abort();
        *self.1.borrow()
    }
}
