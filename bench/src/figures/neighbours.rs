//! The latency of one namespace's submissions while another namespace misbehaves, compared with the quiet phase of the
//! same run; and that of one tenant while another misbehaves in all ways at once.

mod at_once;
mod noise;
mod others;
mod trouble;

use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use sparkgate_testing::webhook::Webhook;

use self::{
    others::{Others, Took},
    trouble::Trouble,
};
use super::launch::prepared;
use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    report::{Bar, Report},
    samples::Samples,
    servers::{Database, Kubernetes},
};

const BAD: &str = "team-a";
const GOOD: &str = "team-b";
/// How long each fault lasts, in seconds.
const TIME: usize = 60;
/// The highest allowed p99 of the well-behaved namespace, as a multiple of its p99 in the quiet phase.
const BAR: f64 = 2.0;
/// No node has logs, and no driver a Spark UI.
const NO_NODES: [&str; 4] = ["--kept-log", "off", "--spark-summary-period", "off"];

#[derive(Default)]
struct Figures {
    p99: [Samples; Took::NAMES.len()],
    ratio: [Samples; Took::NAMES.len()],
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Neighbours, bench);
    let kubernetes = prepared(bench).await?;
    let webhook = webhook(&kubernetes).await?;
    let mut quiet = Figures::default();
    let mut troubled = Trouble::ALL.map(|trouble| (trouble, Figures::default()));
    for _ in 0..bench.runs {
        let database = Database::create(bench).await?;
        let directory = tempfile::tempdir()?;
        let kubeconfig = kubernetes.gateway_kubeconfig();
        let gateway = Gateway::start(bench, directory.path(), database.url(), &kubeconfig, &NO_NODES).await?;
        gateway.until_ready().await?;
        let time = Duration::from_secs(bench.size(TIME) as u64);
        let mut others = Others::new(gateway.address, GOOD, None, None);
        // Warm-up: the first requests take longer.
        others.go_on(time / 4).await?;
        let before = others.go_on(time).await?;
        quiet.take(&before, None);
        for (trouble, figures) in &mut troubled {
            let made = trouble.make(&gateway, &database, &webhook).await?;
            let took = others.go_on(time).await;
            made.end().await?;
            figures.take(&took?, Some(&before));
        }
        database.drop_it().await?;
    }
    let names = || Took::NAMES.into_iter().take(Took::BEFORE_RUNNING);
    for (what, p99) in names().zip(&quiet.p99) {
        report.add(format!("quiet phase: {what}, p99"), "ms", p99);
    }
    for (trouble, figures) in &troubled {
        for ((what, p99), ratio) in names().zip(&figures.p99).zip(&figures.ratio) {
            report.add(format!("{trouble}: {what}, p99"), "ms", p99);
            report.judge(format!("{trouble}: {what}, relative to the quiet phase"), "", ratio, Bar::AtMost(BAR));
        }
    }
    webhook.remove().await;
    at_once::run(bench, &kubernetes, &mut report).await?;
    report.publish(bench)
}

async fn webhook(kubernetes: &Kubernetes) -> anyhow::Result<Webhook> {
    let file = Kubeconfig::read_from(kubernetes.kubeconfig())?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
    Ok(Webhook::start(kube::Client::try_from(config)?, BAD).await)
}

impl Figures {
    fn take(&mut self, took: &Took, quiet: Option<&Took>) {
        for (index, p99) in took.quantile(0.99).into_iter().enumerate() {
            self.p99[index].push(p99);
            if let Some(quiet) = quiet {
                self.ratio[index].push(p99 / quiet.quantile(0.99)[index]);
            }
        }
    }
}
