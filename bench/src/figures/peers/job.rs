//! One job in the words of each peer. All of them are made of the request of the other figures, so that the drivers are
//! the same.

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sparkgate_testing::request::request;

use crate::load::http::Answer;

/// The annotation that carries the number of a job.
const RUN: &str = "example.com/run";

/// A submission.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Job {
    app_resource: String,
    main_class: String,
    app_args: Vec<String>,
    spark_properties: Map<String, Value>,
}

impl Job {
    pub(super) fn new(n: usize, namespace: &str) -> anyhow::Result<Self> {
        serde_json::from_slice(&request(n, namespace)).context("reading a request")
    }

    /// Returns the arguments of spark-submit, which doesn't wait for the driver.
    pub(super) fn arguments(&self, master: &str) -> Vec<String> {
        let mut arguments = ["--master", master, "--deploy-mode", "cluster", "--class"].map(str::to_owned).to_vec();
        arguments.push(self.main_class.clone());
        let wait = ("spark.kubernetes.submission.waitAppCompletion".to_owned(), Value::from("false"));
        for (key, value) in self.spark_properties.clone().into_iter().chain([wait]) {
            arguments.extend(["--conf".to_owned(), format!("{key}={}", value.as_str().unwrap_or_default())]);
        }
        arguments.push(self.app_resource.clone());
        arguments.extend(self.app_args.iter().cloned());
        arguments
    }

    /// Returns the `SparkApplication` of Kubeflow's operator with this name.
    pub(super) fn application(&self, name: &str) -> String {
        let (mut properties, mut own) = (self.spark_properties.clone(), Value::Null);
        // The operator sets these itself.
        for key in ["spark.submit.deployMode", "spark.kubernetes.namespace"] {
            properties.remove(key);
        }
        if let Some(image) = properties.remove("spark.kubernetes.container.image") {
            own = image;
        }
        json!({"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "metadata": {"name": name},
            "spec": {"type": "Scala", "mode": "cluster", "sparkVersion": "4.3.0", "image": own,
                "mainClass": self.main_class, "mainApplicationFile": self.app_resource, "arguments": self.app_args,
                "sparkConf": properties, "driver": {}, "executor": {}}})
        .to_string()
    }
}

/// Returns the id of a submission that was accepted.
pub(super) fn submission_id(answer: &Answer) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Created {
        submission_id: Option<String>,
    }
    let created: Created = answer.json()?;
    created.submission_id.with_context(|| format!("not accepted: {}", String::from_utf8_lossy(&answer.body)))
}

/// What is read of a driver pod.
#[derive(Deserialize)]
pub(super) struct Pod {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    labels: Map<String, Value>,
    #[serde(default)]
    annotations: Map<String, Value>,
}

impl Pod {
    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    pub(super) fn label(&self, name: &str) -> &str {
        self.metadata.labels.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns the number of its job.
    pub(super) fn number(&self) -> Option<usize> {
        self.metadata.annotations.get(RUN)?.as_str()?.rsplit_once('/')?.1.parse().ok()
    }
}
