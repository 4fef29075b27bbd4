//! etcd with fsync on, and a kube-apiserver that has nothing but the rights of the gateway's account: those of the
//! deployment, in all namespaces. Both end when this is dropped.

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use sparkgate_testing::{kube_apiserver::KUBE_SERVERS, rights};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::kubeconfig;
use crate::{bench::Bench, gateway::free_port, load::kubernetes::Client, process::Process};

/// The audit policy: logs all writes, without their objects.
const POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\n\
    rules: [{level: Metadata, verbs: [create, update, patch, delete]}, {level: None}]\n";
/// The directory of the gateway's kubeconfig.
const GATEWAY: &str = "gateway";
const READY: Duration = Duration::from_secs(120);

pub(crate) struct Kubernetes {
    url: String,
    /// The tokens of the administrator and of the gateway.
    tokens: [String; 2],
    /// Closing its standard input ends the servers, which are its children.
    script: Child,
    directory: TempDir,
}

impl Kubernetes {
    pub(crate) async fn start(bench: &Bench) -> anyhow::Result<Self> {
        let directory =
            tempfile::Builder::new().prefix("sparkgate-bench-").tempdir().context("creating a directory")?;
        let [port, etcd, peer] = [free_port()?, free_port()?, free_port()?];
        let tokens = [(); 2].map(|()| uuid::Uuid::new_v4().to_string());
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).with_context(|| format!("writing {name}"))
        };
        let gateway = rights::token_line(rights::USER_EVERYWHERE, &tokens[1]);
        write("tokens.csv", &format!("{},admin,admin,system:masters\n{gateway}", tokens[0]))?;
        write("audit-policy.yaml", POLICY)?;
        let authority = directory.path().join("certs/apiserver.crt");
        let url = format!("https://127.0.0.1:{port}");
        kubeconfig::write(directory.path(), &url, Some(&authority), &tokens[0])?;
        let of_gateway = directory.path().join(GATEWAY);
        std::fs::create_dir(&of_gateway).context("creating a directory")?;
        kubeconfig::write(&of_gateway, &url, Some(&authority), &tokens[1])?;
        let script = Command::new(KUBE_SERVERS)
            .arg(bench.kube_assets.canonicalize().context("looking for etcd and kube-apiserver")?)
            .arg(directory.path())
            .args([port, etcd, peer].map(|port| port.to_string()))
            .env("KUBE_SERVERS_DURABLE", "1")
            .env("KUBE_SERVERS_CONTROLLERS", "")
            .stdin(Stdio::piped())
            .spawn()
            .context("starting etcd and kube-apiserver")?;
        let servers = Self { url, tokens, script, directory };
        servers.until_ready().await?;
        servers.grant().await?;
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

    /// Grants the gateway its rights, and waits until the API server applies them.
    async fn grant(&self) -> anyhow::Result<()> {
        let client = self.client().await?;
        for grant in rights::everywhere() {
            client.post(&grant.collection, grant.object.to_string()).await?;
        }
        let (gateway, begun) = (self.gateway_client().await?, Instant::now());
        while let Err(error) = gateway.get("/api/v1/pods?limit=1").await {
            if begun.elapsed() > READY {
                return Err(error);
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Returns a client with all rights and connections of its own.
    pub(crate) async fn client(&self) -> anyhow::Result<Client> {
        Client::new(&self.kubeconfig(), &self.tokens[0]).await
    }

    /// Returns a client of the gateway's account, which the API server throttles as it does the gateway.
    pub(crate) async fn gateway_client(&self) -> anyhow::Result<Client> {
        Client::new(&self.gateway_kubeconfig(), &self.tokens[1]).await
    }

    /// Returns the server's address.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.file(kubeconfig::FILE)
    }

    pub(crate) fn gateway_kubeconfig(&self) -> PathBuf {
        self.directory.path().join(GATEWAY).join(kubeconfig::FILE)
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.file("audit.log")
    }

    /// Returns the CPU time of etcd and kube-apiserver so far.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        Process(self.script.id()).children()?.into_iter().map(Process::cpu).sum()
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
