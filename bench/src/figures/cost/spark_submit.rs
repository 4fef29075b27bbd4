//! One submission through the real spark-submit, which creates the same objects.

use std::time::Duration;

use crate::{
    figures::{
        launch::NAMESPACES,
        spark_submit::{Ran, run, spark_submit},
    },
    process::cpu_of_ended_children,
    servers::Kubernetes,
};

pub(super) struct Once {
    pub(super) ran: Ran,
    pub(super) cpu: Duration,
}

/// Runs spark-submit until it exits. It doesn't wait for the driver.
pub(super) async fn submit(kubernetes: &Kubernetes) -> anyhow::Result<Once> {
    let master = format!("k8s://{}", kubernetes.url());
    let mut command = spark_submit(kubernetes)?;
    command
        .args(["--master", &master, "--deploy-mode", "cluster", "--name", "nightly-orders"])
        .args(["--class", "org.apache.spark.examples.SparkPi"])
        .args(["--conf", "spark.kubernetes.container.image=spark:4.3.0"])
        .args(["--conf", &format!("spark.kubernetes.namespace={}", NAMESPACES[0])])
        .args(["--conf", "spark.kubernetes.authenticate.driver.serviceAccountName=spark"])
        .args(["--conf", "spark.kubernetes.submission.waitAppCompletion=false"])
        .arg("local:///opt/spark/examples/jars/spark-examples.jar");
    let before = cpu_of_ended_children()?;
    let ran = run(command).await?;
    Ok(Once { ran, cpu: cpu_of_ended_children()? - before })
}
