//! Kubeflow's Spark operator, without its webhook, with the settings of its Helm chart.

use std::{
    env,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{Kubernetes, spark_home};
use crate::{gateway::free_port, load::kubernetes::Client, process::Process};

/// The namespace of the operator's lease.
const NAMESPACE: &str = "spark-operator";
const READY: Duration = Duration::from_secs(120);
/// The chart's values, where they aren't the program's own defaults.
const OPTIONS: [&str; 11] = [
    "--zap-log-level=info",
    "--zap-encoder=console",
    "--controller-threads=10",
    "--enable-ui-service=true",
    "--leader-election=true",
    "--workqueue-ratelimiter-bucket-qps=50",
    "--workqueue-ratelimiter-bucket-size=500",
    "--workqueue-ratelimiter-max-delay=6h",
    "--driver-pod-creation-grace-period=10s",
    "--kube-api-qps=20",
    "--kube-api-burst=30",
];

/// The operator. It ends when this is dropped.
pub(crate) struct Operator {
    child: Child,
    directory: PathBuf,
}

impl Operator {
    /// Creates the kinds of its objects, starts it, and waits until it is ready. Its log goes to `operator.log` in
    /// `directory`. It submits into `namespace`, which exists.
    pub(crate) async fn start(kubernetes: &Kubernetes, directory: &Path, namespace: &str) -> anyhow::Result<Self> {
        let parts = env::var_os("SPARKGATE_OPERATOR");
        let parts = PathBuf::from(parts.context("SPARKGATE_OPERATOR names no operator: `make bench` builds it")?);
        let client = kubernetes.client().await?;
        define(&client, &parts.join("crd")).await?;
        let own = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        client.post("/api/v1/namespaces", own.to_string()).await?;
        let (host, port) = kubernetes.url().trim_start_matches("https://").split_once(':').context("a port")?;
        let probe = free_port()?;
        let log = File::create(directory.join("operator.log")).context("creating the operator's log")?;
        let mut command = Command::new(parts.join("operator"));
        command.args(["controller", "start"]).args(OPTIONS).arg(format!("--namespaces={namespace}"));
        command.arg(format!("--leader-election-lock-namespace={NAMESPACE}"));
        command.arg(format!("--health-probe-bind-address=127.0.0.1:{probe}"));
        command.env("SPARK_HOME", spark_home()?).env("KUBECONFIG", kubernetes.kubeconfig());
        // In a cluster the kubelet sets these. It gives them to spark-submit.
        command.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", port);
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
        let child = child.context("starting the operator")?;
        let mut operator = Self { child, directory: directory.to_owned() };
        operator.until_it_leads(&client).await?;
        Ok(operator)
    }

    /// Waits until it has its lease, without which it does nothing.
    async fn until_it_leads(&mut self, client: &Client) -> anyhow::Result<()> {
        let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases");
        let begun = Instant::now();
        while begun.elapsed() < READY {
            if let Some(status) = self.child.try_wait()? {
                bail!("the operator exited at startup: {status}: {}", self.log());
            }
            let list: Value = serde_json::from_slice(&client.get(&leases).await?)?;
            if list["items"].as_array().is_some_and(|leases| !leases.is_empty()) {
                return Ok(());
            }
            sleep(Duration::from_millis(100)).await;
        }
        bail!("the operator isn't ready after {READY:?}: {}", self.log())
    }

    /// Returns the end of its log.
    pub(crate) fn log(&self) -> String {
        let log = fs::read_to_string(self.directory.join("operator.log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().rev().take(20).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn process(&self) -> Process {
        Process(self.child.id())
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates the kinds of objects in a directory, and waits until the API server has them.
async fn define(client: &Client, directory: &Path) -> anyhow::Result<()> {
    for file in fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))? {
        let kind = fs::read(file?.path()).context("reading a kind of objects")?;
        client.post_yaml("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", kind).await?;
    }
    let begun = Instant::now();
    while let Err(error) = client.get("/apis/sparkoperator.k8s.io/v1beta2/sparkapplications").await {
        if begun.elapsed() > READY {
            return Err(error);
        }
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
