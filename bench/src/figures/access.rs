//! Durable creates per second of callers with an API key and with a token of an issuer, and in a tenant with a policy of its own,
//! compared with those of a gateway without an access file. All of them alternate.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, ensure};
use hyper::header::HeaderValue;
use sparkgate_testing::request::request;
use tempfile::TempDir;
use tokio::time::sleep;

use super::accept::nowhere;
use crate::{
    bench::{Bench, Name},
    gateway::Gateway,
    load::clients::{Calls, Seen, clients, in_words},
    report::{Bar, Report},
    samples::Samples,
    servers::{Database, Issuer},
};

const CLIENTS: [usize; 3] = [1, 16, 64];
const WARM_UP: Duration = Duration::from_secs(1);
/// The number of turns of each caller for each number of clients.
const TURNS: usize = 5;
/// The pause before a turn, in which a gateway finishes what it does after its last reply.
const QUIET: Duration = Duration::from_millis(100);
/// The share of the rate without an access file.
const BAR: f64 = 0.9;

const AUDIENCE: &str = "sparkgate";
const SUBJECT: &str = "scheduler";

/// A tenant with the default policy.
const PLAIN: &str = "plain";
/// A tenant with a policy that has most kinds of rules.
const STRICT: &str = "strict";

/// The callers, of which the first one needs no credentials. The default policy applies to the next two.
const CALLERS: [&str; 4] = ["no access file", "API key", "token of an issuer", "API key, policy with CEL"];

/// Figures of each number of clients, and in it of each caller.
type Figures = [[OfCaller; CALLERS.len()]; CLIENTS.len()];

#[derive(Default)]
struct OfCaller {
    calls: Calls,
    /// The rate, of that without an access file.
    share: Samples,
    /// The CPU time, of that without an access file.
    cost: Samples,
}

pub(crate) async fn run(bench: &Bench) -> anyhow::Result<()> {
    let mut report = Report::new(Name::Access, bench);
    let mut figures = Figures::default();
    for _ in 0..bench.runs {
        once(bench, &mut figures).await?;
    }
    for (clients, callers) in CLIENTS.into_iter().zip(&figures) {
        let clients = in_words(clients);
        for (number, (caller, of)) in CALLERS.into_iter().zip(callers).enumerate() {
            report.add(format!("{clients}, {caller}: accepted"), "/s", &of.calls.rate);
            report.add(format!("{clients}, {caller}: p99"), "ms", &of.calls.p99);
            report.add(format!("{clients}, {caller}: CPU of the gateway"), "ms/submission", &of.calls.cpu);
            if number > 0 {
                let what = format!("{clients}, {caller}: share of the rate without an access file");
                report.judge(what, "", &of.share, Bar::AtLeast(BAR));
                report.add(format!("{clients}, {caller}: CPU time, of that without an access file"), "×", &of.cost);
            }
        }
    }
    report.publish(bench)
}

async fn once(bench: &Bench, figures: &mut Figures) -> anyhow::Result<()> {
    let turn = Duration::from_millis(bench.size(1000) as u64);
    let (open, closed) = (Database::migrated(bench).await?, Database::migrated(bench).await?);
    let issuer = Issuer::start().await?;
    let directories = [tempfile::tempdir()?, tempfile::tempdir()?];
    let access = access_file(&directories[1], &issuer)?;
    let options = ["--access-file", access.to_str().context("the path of a directory")?];
    let without = start(bench, &directories[0], &open, &[]).await?;
    let with = start(bench, &directories[1], &closed, &options).await?;
    let key = |tenant| api_key(bench, &closed, tenant, "submitter");
    let callers = [
        Caller { gateway: &without, credentials: None, namespace: PLAIN },
        Caller { gateway: &with, credentials: Some(key(PLAIN)?), namespace: PLAIN },
        Caller { gateway: &with, credentials: Some(bearer(&issuer.token(AUDIENCE, SUBJECT))?), namespace: PLAIN },
        Caller { gateway: &with, credentials: Some(key(STRICT)?), namespace: STRICT },
    ];

    for caller in &callers {
        caller.load(16, WARM_UP).await?;
    }
    for (clients, of) in CLIENTS.into_iter().zip(figures) {
        let mut seen: [Seen; CALLERS.len()] = Default::default();
        for number in 0..TURNS {
            // Each caller comes first in some turns.
            for caller in (0..callers.len()).map(|place| (place + number) % callers.len()) {
                sleep(QUIET).await;
                seen[caller].add(callers[caller].load(clients, turn).await?);
            }
        }
        let (rate, cpu) = (seen[0].rate(), seen[0].cpu_of_each());
        for (seen, of) in seen.iter().zip(of) {
            of.share.push(seen.rate() / rate);
            of.cost.push(seen.cpu_of_each() / cpu);
            of.calls.take(seen);
        }
    }
    drop((without, with));
    open.drop_it().await?;
    closed.drop_it().await
}

async fn start(bench: &Bench, directory: &TempDir, database: &Database, options: &[&str]) -> anyhow::Result<Gateway> {
    Gateway::start(bench, directory.path(), database.url(), &nowhere(directory)?, options).await
}

/// Who posts, and where to.
struct Caller<'a> {
    gateway: &'a Gateway,
    credentials: Option<HeaderValue>,
    namespace: &'static str,
}

impl Caller<'_> {
    /// Runs `count` clients with the same credentials, each posting one request after the other.
    async fn load(&self, count: usize, time: Duration) -> anyhow::Result<Seen> {
        clients(self.gateway, count, time, async |connection, n| {
            let body = request(n, self.namespace);
            connection.post_as(self.credentials.as_ref(), "/v1/submissions/create", body).await
        })
        .await
    }
}

/// Writes an access file with two tenants, whose policies permit the request and whose limits nothing reaches.
fn access_file(directory: &TempDir, issuer: &Issuer) -> anyhow::Result<PathBuf> {
    let (path, url) = (directory.path().join("access.yaml"), issuer.url());
    let text = format!(
        "authentication:
  oidc: [{{name: corp, issuer: '{url}', jwksUri: '{url}/keys', audience: {AUDIENCE}, groupsClaim: groups}}]
tenants:
  {PLAIN}:
    namespaces: [{PLAIN}]
    members: [{{role: submitter, groups: ['corp:data-eng']}}]
  {STRICT}:
    namespaces: [{STRICT}]
    serviceAccounts: [spark]
    policy:
      images: ['registry.example.com/data/**', 'apache/spark:4.*']
      secrets: ['orders-*']
      configMaps: [hadoop-conf]
      nodeSelectors: ['pool=orders', 'topology.kubernetes.io/zone']
      tolerations: [pool]
      limits:
        driver: {{cores: 4, memory: 16Gi}}
        executor: {{cores: 8, memory: 64Gi}}
        executors: 50
        totalCores: 200
        totalMemory: 1Ti
      labels: {{allow: [team]}}
      resources: ['local:///opt/spark/**', 's3a://data-platform/**']
      inlineSecrets: forbid
      cel:
      - name: owner
        expression: \"has(pod.metadata.labels.team) && pod.metadata.labels.team in ['orders', 'reporting']\"
        message: set the label team to orders or reporting
limits: {{writes: 1000000/s, reads: 1000000/s, bytes: 100GiB/s}}
"
    );
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Creates an API key of a tenant in the database; returns the `Authorization` header of a request with it.
pub(super) fn api_key(bench: &Bench, database: &Database, tenant: &str, role: &str) -> anyhow::Result<HeaderValue> {
    let program: &Path = &bench.program()?;
    let words = ["bootstrap-key", "--role", role, "--tenant", tenant];
    let output = Command::new(program).args(words).env("SPARKGATE_DATABASE_URL", database.url()).output();
    let output = output.with_context(|| format!("starting {}", program.display()))?;
    ensure!(output.status.success(), "creating an API key: {}", String::from_utf8_lossy(&output.stderr));
    bearer(String::from_utf8(output.stdout).context("reading an API key")?.trim())
}

fn bearer(token: &str) -> anyhow::Result<HeaderValue> {
    HeaderValue::from_str(&format!("Bearer {token}")).context("making a header")
}
