//! The time from a change of a pod until HTTP shows it, on a real kube-apiserver and a real Postgres. Pods change at a
//! fixed rate that doesn't depend on earlier changes: half of the changes start a driver, half end one.

mod changes;
mod drivers;
pub(super) mod kubelet;
mod seen;

use std::time::Duration;

use tokio::time::sleep;

use self::{changes::Lag, drivers::Drivers};
use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    report::{Bar, Report},
    samples::Samples,
    servers::{Database, Kubernetes},
};

const LIVE: [usize; 2] = [500, 10_000];
/// Changes per second; [`CHANGES`] of them are measured.
const RATE: u32 = 100;
const CHANGES: usize = 1000;
/// The pause after the gateway's start, which has other work at first.
const QUIET: Duration = Duration::from_secs(5);
const BAR: f64 = 100.0;

#[derive(Default)]
struct Figures {
    told: [Samples; 2],
    told_since_sent: [Samples; 2],
    read: [Samples; 2],
    api_server: [Samples; 2],
    /// CPU time of the gateway, and of kube-apiserver with etcd.
    cpu: [Samples; 2],
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Lag, bench);
    let kubernetes = Kubernetes::start(bench).await?;
    let database = Database::create(bench).await?;
    let mut drivers = Drivers::new(kubernetes.client().await?, &database).await?;
    for live in LIVE.map(|live| bench.size(live)) {
        let mut figures = Figures::default();
        for _ in 0..bench.runs {
            once(bench, live, &kubernetes, &mut drivers, &mut figures).await?;
        }
        figures.add_to(&mut report, live);
    }
    database.drop_it().await?;
    report.publish(bench)
}

async fn once(
    bench: &Bench,
    live: usize,
    kubernetes: &Kubernetes,
    drivers: &mut Drivers<'_>,
    figures: &mut Figures,
) -> anyhow::Result<()> {
    let count = bench.size(CHANGES);
    let warm_up = count / 10;
    // Half of the changes end a driver, so the number of live drivers is this many in the middle of the run.
    drivers.top_up(live + (warm_up + count) / 4, warm_up + count).await?;
    let directory = tempfile::tempdir()?;
    let url = drivers.database.url();
    // There is no kubelet that could serve logs.
    let options = ["--kept-log", "off"];
    let gateway = Gateway::start(bench, directory.path(), url, &kubernetes.gateway_kubeconfig(), &options).await?;
    gateway.until_ready().await?;
    sleep(QUIET).await;
    let cpu = || -> anyhow::Result<_> {
        let servers = kubernetes.cpu()?;
        Ok([gateway.process().cpu()?, servers])
    };
    let before = cpu()?;
    let lag = Lag::measure(drivers, gateway.address, warm_up, count).await?;
    for ((figure, before), after) in figures.cpu.iter_mut().zip(before).zip(cpu()?) {
        figure.push((after - before).as_secs_f64() * 1e3 / (warm_up + count) as f64);
    }
    figures.take(&lag);
    Ok(())
}

impl Figures {
    fn take(&mut self, lag: &Lag) {
        let pairs = [
            (&mut self.told, &lag.told),
            (&mut self.told_since_sent, &lag.told_since_sent),
            (&mut self.read, &lag.read),
            (&mut self.api_server, &lag.api_server),
        ];
        for ([p50, p99], lag) in pairs {
            p50.push(lag.median());
            p99.push(lag.quantile(0.99));
        }
    }

    fn add_to(&self, report: &mut Report, live: usize) {
        let at = format!("{live} live drivers, {RATE} changes/s");
        let mut add = |what: &str, [p50, p99]: &[Samples; 2], bar: Option<Bar>| {
            report.add(format!("{at}: {what}, p50"), "ms", p50);
            match bar {
                Some(bar) => report.judge(format!("{at}: {what}, p99"), "ms", p99, bar),
                None => report.add(format!("{at}: {what}, p99"), "ms", p99),
            }
        };
        add("seen on the event stream", &self.told, Some(Bar::AtMost(BAR)));
        add("the same since the change was sent", &self.told_since_sent, None);
        add("shown by a GET every 5 ms", &self.read, Some(Bar::AtMost(BAR)));
        add("the API server's own answer", &self.api_server, None);
        let [gateway, servers] = &self.cpu;
        report.add(format!("{at}: CPU of the gateway"), "ms/change", gateway);
        report.add(format!("{at}: CPU of kube-apiserver and etcd"), "ms/change", servers);
    }
}
