//! Durable creates per second of callers with an API key and with a token of an issuer, compared with those of a gateway without an
//! access file. All of them alternate.

use std::{path::Path, process::Command, time::Duration};

use anyhow::{Context, ensure};
use hyper::header::HeaderValue;
use tempfile::TempDir;
use tokio::time::sleep;

use super::{accept::nowhere, request::request};
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

/// The callers, of which the first one needs no credentials.
const CALLERS: [&str; 3] = ["no access file", "API key", "token of an issuer"];

/// Figures of each number of clients, and in it of each caller.
type Figures = [[OfCaller; CALLERS.len()]; CLIENTS.len()];

#[derive(Default)]
struct OfCaller {
    calls: Calls,
    share: Samples,
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
    let bearer = |token: &str| HeaderValue::from_str(&format!("Bearer {token}")).context("making a header");
    let (key, token) = (bearer(&api_key(bench, &closed)?)?, bearer(&issuer.token(AUDIENCE, SUBJECT))?);
    let callers = [(&without, None), (&with, Some(&key)), (&with, Some(&token))];

    for (gateway, credentials) in callers {
        load(gateway, credentials, 16, WARM_UP).await?;
    }
    for (clients, of) in CLIENTS.into_iter().zip(figures) {
        let mut seen: [Seen; CALLERS.len()] = Default::default();
        for number in 0..TURNS {
            // Each caller comes first in some turns.
            for caller in (0..callers.len()).map(|place| (place + number) % callers.len()) {
                let (gateway, credentials) = callers[caller];
                sleep(QUIET).await;
                seen[caller].add(load(gateway, credentials, clients, turn).await?);
            }
        }
        let base = seen[0].rate();
        for (seen, of) in seen.iter().zip(of) {
            of.share.push(seen.rate() / base);
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

/// Runs `count` clients with the same credentials, each posting one request after the other.
async fn load(
    gateway: &Gateway,
    credentials: Option<&HeaderValue>,
    count: usize,
    time: Duration,
) -> anyhow::Result<Seen> {
    clients(gateway, count, time, async |connection, n| {
        connection.post_as(credentials, "/v1/submissions/create", request(n, "default")).await
    })
    .await
}

/// Writes an access file with one tenant, whose limits nothing reaches.
fn access_file(directory: &TempDir, issuer: &Issuer) -> anyhow::Result<std::path::PathBuf> {
    let (path, url) = (directory.path().join("access.yaml"), issuer.url());
    let text = format!(
        "authentication:
  oidc: [{{name: corp, issuer: '{url}', jwksUri: '{url}/keys', audience: {AUDIENCE}, groupsClaim: groups}}]
tenants:
  bench:
    namespaces: [default]
    members: [{{role: submitter, groups: ['corp:data-eng']}}]
limits: {{writes: 1000000/s, reads: 1000000/s, bytes: 100GiB/s}}
"
    );
    std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Creates an API key in the database.
fn api_key(bench: &Bench, database: &Database) -> anyhow::Result<String> {
    let program: &Path = &bench.program()?;
    let words = ["bootstrap-key", "--role", "submitter", "--tenant", "bench"];
    let output = Command::new(program).args(words).env("SPARKGATE_DATABASE_URL", database.url()).output();
    let output = output.with_context(|| format!("starting {}", program.display()))?;
    ensure!(output.status.success(), "creating an API key: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout).context("reading an API key")?.trim().to_owned())
}
