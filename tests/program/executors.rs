//! Executors: a driver of ours requests the same pods from the cluster as a driver of spark-submit. Both run in the
//! same sandbox, with Spark's own scheduler backend, and their executor pods are compared.

use std::{fs, net::SocketAddr, path::Path, process::Command};

use serde_json::{Value, json};
use sparkgate_testing::{gateway::until, http, process::free_address};

use crate::dev::{Dev, ONE_AT_A_TIME};

const TEMPLATE: &str = r#"
apiVersion: v1
kind: Pod
metadata:
  labels: {from: template}
  annotations: {note: "kept"}
spec:
  priority: 0
  tolerations: [{key: spot, operator: Exists}]
  terminationGracePeriodSeconds: 7
  containers:
    - name: worker
      env: [{name: FROM_TEMPLATE, value: "1"}]
      resources: {limits: {ephemeral-storage: 1Gi}}
"#;

/// An application that waits until it has its executor, and then continues to wait.
const APP: &str = "import time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
print('counted', spark.sparkContext.parallelize(range(10), 2).count(), flush=True)
time.sleep(600)
";

fn properties() -> Value {
    json!({
        "spark.app.name": "Executors ü", "spark.executor.instances": "1", "spark.driver.memory": "512m",
        "spark.executor.memory": "512m", "spark.executor.cores": "2", "spark.executorEnv.COLOUR": "green: #1",
        "spark.kubernetes.executor.request.cores": "100m", "spark.kubernetes.executor.limit.cores": "2",
        "spark.kubernetes.executor.label.team": "data", "spark.kubernetes.executor.annotation.why": "a = b",
        "spark.kubernetes.executor.secrets.token": "/etc/token",
        "spark.kubernetes.executor.secretKeyRef.PASSWORD": "token:password",
        "spark.kubernetes.executor.volumes.emptyDir.spark-local-dir-1.mount.path": "/scratch",
        "spark.kubernetes.executor.volumes.emptyDir.spark-local-dir-1.options.sizeLimit": "1Gi",
        "spark.executor.extraJavaOptions": "-Dgreeting=hello",
        "spark.decommission.enabled": "true",
    })
}

/// Waits for the executor pods of an application; returns them.
fn executors(sandbox: SocketAddr, driver_label: &str) -> Value {
    let list = |selector: &str| {
        let path = format!("/api/v1/namespaces/default/pods?labelSelector={selector}");
        http::get(sandbox, &path).unwrap().json()["items"].clone()
    };
    let mut found = Value::Null;
    until("the driver has its executor", || {
        let drivers = list(&format!("spark-role%3Ddriver%2Cis%3D{driver_label}"));
        let Some(app) = drivers[0]["metadata"]["labels"]["spark-app-selector"].as_str() else { return false };
        found = list(&format!("spark-role%3Dexecutor%2Cspark-app-selector%3D{app}"));
        found[0]["status"]["phase"] == "Running"
    });
    found
}

/// Returns a pod as its creator described it, without the parts that are generated for each application.
fn described(mut pod: Value) -> Value {
    let metadata = pod["metadata"].take();
    let mut labels = metadata["labels"].clone();
    labels.as_object_mut().unwrap().retain(|key, _| !key.starts_with("sparkgate.dev/") && key != "spark-app-selector");
    let owner = &metadata["ownerReferences"][0];
    let mut spec = pod["spec"].take();
    spec.as_object_mut().unwrap().remove("nodeName");
    // Spark takes them from a hash map: the order differs between two runs of the same application.
    spec["containers"][0]["env"].as_array_mut().unwrap().sort_by_key(|variable| variable["name"].to_string());
    let text = json!({"name": metadata["name"], "labels": labels, "annotations": metadata["annotations"],
        "owner": [owner["kind"], owner["controller"]], "spec": spec});
    serde_json::from_str(&without_random_parts(&text.to_string())).unwrap()
}

/// Replaces long hexadecimal words (ids) and addresses by asterisks.
fn without_random_parts(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_hexdigit() || ".-:@".contains(c);
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(is_part) {
        let (before, after) = rest.split_at(at);
        let end = after.find(|c| !is_part(c)).unwrap_or(after.len());
        let (word, tail) = after.split_at(end);
        let digits = word.chars().filter(char::is_ascii_hexdigit).count();
        out.push_str(before);
        let random = digits >= 16 || word.starts_with("127.") || word.starts_with("@127.");
        out.push_str(if random { "*" } else { word });
        rest = tail;
    }
    out + rest
}

fn submit_with_spark(sandbox: SocketAddr, dev_dir: &Path, app: &str, template: &Path) {
    let home = std::env::var("SPARK_HOME").unwrap();
    let mut command = Command::new(format!("{home}/bin/spark-submit"));
    command
        .env("SPARK_HOME", &home)
        .env("KUBECONFIG", "/dev/null")
        .env_remove("SPARK_CONF_DIR")
        .env("SPARK_USER", "tester");
    command.args(["--master", &format!("k8s://http://{sandbox}"), "--deploy-mode", "cluster"]);
    // The properties with which drivers of `dev` reach the sandbox.
    command.arg("--properties-file").arg(dev_dir.join("spark-defaults.conf"));
    let mut conf: Vec<String> = properties()
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap()))
        .collect();
    conf.push("spark.kubernetes.submission.waitAppCompletion=false".to_owned());
    conf.push("spark.kubernetes.driver.label.is=spark-submit".to_owned());
    conf.push(format!("spark.kubernetes.executor.podTemplateFile={}", template.display()));
    for one in &conf {
        command.args(["--conf", one]);
    }
    let output = command.arg(app).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn executor_pods_are_the_same_as_under_spark_submit() {
    let _guard = ONE_AT_A_TIME.lock();
    let dir = tempfile::tempdir().unwrap();
    let sandbox = free_address();
    let dev = Dev::start(dir.path(), sandbox);
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "data": {"password": "czNjcmV0"}});
    let made = http::post(sandbox, "/api/v1/namespaces/default/secrets", &secret.to_string()).unwrap();
    assert_eq!(made.status, 201, "{}", made.body);
    let (app, template) = (dir.path().join("app.py"), dir.path().join("executor.yaml"));
    fs::write(&app, APP).unwrap();
    fs::write(&template, TEMPLATE).unwrap();
    let app = format!("local://{}", app.display());

    submit_with_spark(sandbox, dir.path(), &app, &template);
    let sparks = executors(sandbox, "spark-submit");

    let mut ours = properties();
    ours["spark.kubernetes.driver.label.is"] = json!("sparkgate");
    let body = json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appResource": app,
        "mainClass": "", "appArgs": [], "sparkProperties": ours, "environmentVariables": {"SPARK_USER": "tester"},
        "executorPodTemplate": TEMPLATE});
    let reply = http::post(dev.gateway.address, "/v1/submissions/create", &body.to_string()).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.body);
    let ours = executors(sandbox, "sparkgate");

    assert_eq!(ours.as_array().unwrap().len(), 1);
    assert_eq!(format!("{:#}", described(ours[0].clone())), format!("{:#}", described(sparks[0].clone())));
}
