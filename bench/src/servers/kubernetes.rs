//! etcd, which waits for the disk, and a kube-apiserver, with nothing in them. They end when this is dropped.

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::kubeconfig;
use crate::{bench::Bench, gateway::free_port, load::kubernetes::Client, process::Process};

/// Which requests the audit log keeps: all writes, without their objects.
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n\
    rules: [{level: Metadata, verbs: [create, update, patch, delete]}, {level: None}]\n";
const READY: Duration = Duration::from_secs(120);

pub(crate) struct Kubernetes {
    url: String,
    token: String,
    /// Closing its standard input ends the servers, which are its children.
    script: Child,
    directory: TempDir,
}

impl Kubernetes {
    pub(crate) async fn start(bench: &Bench) -> anyhow::Result<Self> {
        let directory = tempfile::Builder::new().prefix("sparkgate-bench-").tempdir().context("making a directory")?;
        let [port, etcd, peer] = [free_port()?, free_port()?, free_port()?];
        let token = uuid::Uuid::new_v4().to_string();
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).with_context(|| format!("writing {name}"))
        };
        write("tokens.csv", &format!("{token},admin,admin,system:masters\n"))?;
        write("audit-policy.yaml", POLICY)?;
        let authority = directory.path().join("certs/apiserver.crt");
        let url = format!("https://127.0.0.1:{port}");
        kubeconfig::write(directory.path(), &url, Some(&authority), &token)?;
        let script = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/support/kube-servers"))
            .arg(bench.kube_assets.canonicalize().context("looking for etcd and kube-apiserver")?)
            .arg(directory.path())
            .args([port, etcd, peer].map(|port| port.to_string()))
            .env("KUBE_SERVERS_DURABLE", "1")
            .env("KUBE_SERVERS_CONTROLLERS", "")
            .stdin(Stdio::piped())
            .spawn()
            .context("starting etcd and kube-apiserver")?;
        let servers = Self { url, token, script, directory };
        servers.until_ready().await?;
        Ok(servers)
    }

    async fn until_ready(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < READY {
            sleep(Duration::from_millis(100)).await;
            if let Ok(client) = self.client().await
                && client.get("/readyz").await.is_ok_and(|body| body.as_ref() == b"ok")
            {
                return Ok(());
            }
        }
        let log = std::fs::read_to_string(self.file("kube-apiserver.log")).unwrap_or_default();
        bail!("kube-apiserver isn't ready after {READY:?}: {}", log.lines().last().unwrap_or_default())
    }

    /// A client with all rights and connections of its own.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        Client::new(&self.kubeconfig(), &self.token).await
    }

    /// Its address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.file(kubeconfig::FILE)
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.file("audit.log")
    }

    /// The CPU time of etcd and kube-apiserver so far.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let pid = self.script.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
        children.split_whitespace().map(|pid| Process(pid.parse()?).cpu()).sum()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
