//! Kubeflow's Spark operator, without its webhook, with the settings of its Helm chart.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::Context;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{Kubernetes, spark_home};
use crate::{gateway::free_port, load::kubernetes::Client, process::Process, program::Program};

/// The namespace of the operator's lease.
const NAMESPACE: &str = "spark-operator";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/spark-operator/leases";
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
pub(crate) struct Operator(Program);

impl Operator {
    /// Creates the kinds of its objects, starts it, and waits until it is ready. Its log goes to `operator.log` in
    /// `directory`. It submits into `namespace`, which exists.
    pub(crate) async fn start(kubernetes: &Kubernetes, directory: &Path, namespace: &str) -> anyhow::Result<Self> {
        let parts = env::var_os("SPARKGATE_OPERATOR");
        let parts = PathBuf::from(parts.context("SPARKGATE_OPERATOR names no operator: `make bench` builds it")?);
        let client = kubernetes.client().await?;
        define(&client, &parts.join("crd")).await?;
        client.create_namespace(NAMESPACE).await?;
        let (host, port) = kubernetes.url().trim_start_matches("https://").split_once(':').context("a port")?;
        let probe = free_port()?;
        let mut command = Command::new(parts.join("operator"));
        command.args(["controller", "start"]).args(OPTIONS).arg(format!("--namespaces={namespace}"));
        command.arg(format!("--leader-election-lock-namespace={NAMESPACE}"));
        command.arg(format!("--health-probe-bind-address=127.0.0.1:{probe}"));
        command.env("SPARK_HOME", spark_home()?).env("KUBECONFIG", kubernetes.kubeconfig());
        // In a cluster the kubelet sets these. It gives them to spark-submit.
        command.env("KUBERNETES_SERVICE_HOST", host).env("KUBERNETES_SERVICE_PORT", port);
        let mut program = Program::start(&mut command, "the operator", directory.join("operator.log"))?;
        // Without its lease it does nothing.
        let leads = async || {
            let list: Value = serde_json::from_slice(&client.get(LEASES).await?)?;
            Ok(list["items"].as_array().is_some_and(|leases| !leases.is_empty()))
        };
        program.until(READY, Duration::from_millis(100), leads).await?;
        Ok(Self(program))
    }

    /// Returns the end of its log.
    pub(crate) fn log(&self) -> String {
        self.0.log_end()
    }

    pub(crate) fn process(&self) -> Process {
        self.0.process()
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
