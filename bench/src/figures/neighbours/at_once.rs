//! One tenant misbehaves in all ways at once, and another one submits. Its latencies are compared with those of the
//! quiet phase of the same gateway.

use std::{path::PathBuf, time::Duration};

use anyhow::Context;
use tempfile::TempDir;

use super::{
    BAR, GOOD, NO_NODES,
    noise::{NAMESPACES, Noise},
    others::{Others, Took},
};
use crate::{
    bench::Bench,
    figures::access::api_key,
    gateway::Gateway,
    report::{Bar, Report},
    samples::Samples,
    servers::{Database, Kubernetes},
};

/// The tenant that behaves well, with the namespace [`GOOD`].
const STEADY: &str = "steady";
/// The tenant that doesn't, with the namespaces [`NAMESPACES`].
const NOISY: &str = "noisy";
/// How long each phase lasts, in seconds.
const TIME: usize = 30;
const SHARES: [(&str, f64); 2] = [("p50", 0.5), ("p99", 0.99)];

/// For p50 and p99, the latencies of one phase, and their ratios to those of the quiet phase.
#[derive(Default)]
struct Figures {
    took: [[Samples; Took::NAMES.len()]; SHARES.len()],
    ratio: [[Samples; Took::NAMES.len()]; SHARES.len()],
}

impl Figures {
    fn take(&mut self, took: &Took, quiet: &Took) {
        for (at, (_, share)) in SHARES.into_iter().enumerate() {
            for (what, (took, quiet)) in took.quantile(share).into_iter().zip(quiet.quantile(share)).enumerate() {
                self.took[at][what].push(took);
                self.ratio[at][what].push(took / quiet);
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Beside {
    /// Its namespaces are at their quotas.
    Queued,
    /// Nothing holds back its queues, so that they are launched.
    Launched,
}

impl Beside {
    const ALL: [Self; 2] = [Self::Queued, Self::Launched];

    fn name(self) -> &'static str {
        match self {
            Self::Queued => "everything at once, queues at their quotas",
            Self::Launched => "everything at once, queues that are launched",
        }
    }
}

pub(super) async fn run(bench: &Bench, kubernetes: &Kubernetes, report: &mut Report) -> anyhow::Result<()> {
    let client = kubernetes.client().await?;
    client.create_namespace(NAMESPACES[2]).await?;
    let (mut quiet, mut beside) = (Figures::default(), Beside::ALL.map(|beside| (beside, Figures::default())));
    let mut levels = Beside::ALL.map(|_| Noise::LEVELS.map(|_| Samples::default()));
    for _ in 0..bench.runs {
        let database = Database::migrated(bench).await?;
        let directory = tempfile::tempdir()?;
        let gateway = start(bench, kubernetes, &database, &directory).await?;
        let key = |tenant, role| api_key(bench, &database, tenant, role);
        let credentials = key(STEADY, "submitter")?;
        let mut others = Others::new(gateway.address, GOOD, Some(credentials), Some(kubernetes.client().await?));
        let time = Duration::from_secs(bench.size(TIME) as u64);
        // Warm-up: the first requests take longer.
        others.go_on(time / 4).await?;
        let before = others.go_on(time).await?;
        quiet.take(&before, &before);
        let mut noise = Noise::new(gateway.address, key(NOISY, "operator")?, client.clone());
        noise.fill_quotas().await?;
        noise.begin(bench, &database).await?;
        for ((beside, figures), levels) in beside.iter_mut().zip(&mut levels) {
            if matches!(beside, Beside::Launched) {
                noise.lift_quotas().await?;
                noise.until_launched(bench, &database).await?;
            }
            figures.take(&others.go_on(time).await?, &before);
            for (samples, level) in levels.iter_mut().zip(noise.level(&database).await?) {
                samples.push(level);
            }
        }
        drop((noise, gateway));
        database.drop_it().await?;
    }
    quiet.add_to("access file, quiet phase", None, report);
    for ((beside, figures), levels) in beside.iter().zip(&levels) {
        figures.add_to(beside.name(), Some(Bar::AtMost(BAR)), report);
        for (what, level) in Noise::LEVELS.into_iter().zip(levels) {
            report.add(format!("{}: {what}", beside.name()), "", level);
        }
    }
    Ok(())
}

impl Figures {
    fn add_to(&self, phase: &str, bar: Option<Bar>, report: &mut Report) {
        for (what, name) in Took::NAMES.into_iter().enumerate() {
            for (at, (share, _)) in SHARES.into_iter().enumerate() {
                report.add(format!("{phase}: {name}, {share}"), "ms", &self.took[at][what]);
                if let Some(bar) = bar {
                    let ratio = format!("{phase}: {name}, {share}, relative to the quiet phase");
                    report.judge(ratio, "", &self.ratio[at][what], bar);
                }
            }
        }
    }
}

async fn start(
    bench: &Bench,
    kubernetes: &Kubernetes,
    database: &Database,
    directory: &TempDir,
) -> anyhow::Result<Gateway> {
    let access = access_file(directory)?;
    let files = directory.path().join("files");
    std::fs::create_dir(&files).context("creating a directory")?;
    let text = |path: &PathBuf| path.to_str().map(str::to_owned).context("the path of a directory");
    let (access, files) = (text(&access)?, text(&files)?);
    let mut options = vec!["--access-file", &access, "--files-url", &files];
    options.extend(["--files-base-url", "http://localhost", "--webhook-networks", "127.0.0.0/8"]);
    options.extend(["--webhook-http", "true", "--webhook-ports", "1-65535"]);
    options.extend(NO_NODES);
    let kubeconfig = kubernetes.gateway_kubeconfig();
    let gateway = Gateway::start(bench, directory.path(), database.url(), &kubeconfig, &options).await?;
    gateway.until_ready().await?;
    Ok(gateway)
}

/// Writes an access file with two tenants and rates that nothing reaches: it isn't they that hold the neighbour back.
fn access_file(directory: &TempDir) -> anyhow::Result<PathBuf> {
    let path = directory.path().join("access.yaml");
    let text = format!(
        "authentication: {{}}
tenants:
  {STEADY}: {{namespaces: [{GOOD}]}}
  {NOISY}: {{namespaces: [{}]}}
limits: {{writes: 1000000/s, reads: 1000000/s, bytes: 100GiB/s}}
",
        NAMESPACES.join(", ")
    );
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}
