//! One submission through the real spark-submit: a JVM that creates the same objects and exits.

use std::{
    io::{Read, Seek},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use tokio::time::{Instant, sleep};

use crate::{
    figures::launch::NAMESPACES,
    process::{Process, cpu_of_ended_children},
    servers::{Kubernetes, spark_home},
};

pub(super) struct Once {
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
    /// Peak memory in MB.
    pub(super) memory: f64,
}

/// Runs spark-submit until it exits. It doesn't wait for the driver.
pub(super) async fn submit(kubernetes: &Kubernetes) -> anyhow::Result<Once> {
    let home = spark_home()?;
    let master = format!("k8s://{}", kubernetes.url());
    let mut said = tempfile::tempfile()?;
    let (before, begun) = (cpu_of_ended_children()?, Instant::now());
    let mut child = Command::new(home.join("bin/spark-submit"))
        .args(["--master", &master, "--deploy-mode", "cluster", "--name", "nightly-orders"])
        .args(["--class", "org.apache.spark.examples.SparkPi"])
        .args(["--conf", "spark.kubernetes.container.image=spark:4.3.0"])
        .args(["--conf", &format!("spark.kubernetes.namespace={}", NAMESPACES[0])])
        .args(["--conf", "spark.kubernetes.authenticate.driver.serviceAccountName=spark"])
        .args(["--conf", "spark.kubernetes.submission.waitAppCompletion=false"])
        .arg("local:///opt/spark/examples/jars/spark-examples.jar")
        .env("KUBECONFIG", kubernetes.kubeconfig())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(said.try_clone()?)
        .spawn()
        .context("starting spark-submit")?;
    let mut memory = 0.0;
    let status = loop {
        // The scripts exec the JVM, so the process id stays the same.
        memory = Process(child.id()).peak_memory().unwrap_or_default().max(memory);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        sleep(Duration::from_millis(10)).await;
    };
    if !status.success() {
        let mut words = String::new();
        said.rewind()?;
        said.read_to_string(&mut words)?;
        bail!("spark-submit: {status}: {words}");
    }
    Ok(Once { wall: begun.elapsed(), cpu: cpu_of_ended_children()? - before, memory })
}
