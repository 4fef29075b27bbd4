//! What is left of a real Spark job when its pods are gone: the logs of its executors, across a gateway that is killed, and its page in a
//! real History Server.

use std::{
    fs,
    process::{Child, Command, Stdio},
};

use serde_json::json;
use sparkgate_testing::{gateway::until, http, process::free_address};

use crate::dev::{Dev, ONE_AT_A_TIME};

/// An application whose executors write lines with numbers, slowly enough for a gateway to be killed meanwhile.
const APP: &str = "import sys, time
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
def count(numbers):
    for n in numbers:
        print(f'number {n}', file=sys.stderr, flush=True)
        time.sleep(0.05)
    return [0]
print('begins', flush=True)
spark.sparkContext.parallelize(range(200), 1).mapPartitions(count).collect()
print('ends', flush=True)
";

/// Spark's History Server. It ends with its test.
struct HistoryServer(Child);

impl HistoryServer {
    fn start(port: u16, logs: &std::path::Path) -> Self {
        let home = std::env::var("SPARK_HOME").unwrap();
        let options = format!(
            "-Dspark.history.fs.logDirectory=file://{} -Dspark.history.ui.port={port} -Dspark.history.fs.update.interval=1s",
            logs.display()
        );
        let mut command = Command::new(format!("{home}/bin/spark-class"));
        command.arg("org.apache.spark.deploy.history.HistoryServer").env("SPARK_HISTORY_OPTS", options);
        command.env("SPARK_HOME", &home).env("SPARK_LOCAL_IP", "127.0.0.1");
        Self(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for HistoryServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn executor_logs_and_history_are_there_after_the_job() {
    let _guard = ONE_AT_A_TIME.lock();
    let dir = tempfile::tempdir().unwrap();
    let events = dir.path().join("events");
    fs::create_dir(&events).unwrap();
    let app = dir.path().join("counting.py");
    fs::write(&app, APP).unwrap();
    let history = free_address();
    let (sandbox, url) = (free_address(), format!("http://{history}/history/{{appId}}/jobs/"));
    let options = ["--spark-history-url", &url];
    let dev = Dev::start_with(dir.path(), sandbox, &options);
    let properties = json!({"spark.app.name": "counting", "spark.executor.instances": "1", "spark.driver.memory": "512m",
        "spark.executor.memory": "512m", "spark.eventLog.enabled": "true", "spark.eventLog.dir": format!("file://{}", events.display())});
    let id = dev.gateway.submit(&format!("local://{}", app.display()), &[], &properties);
    let log =
        |dev: &Dev, query: &str| http::get(dev.gateway.address, &format!("/v1/submissions/{id}/logs?{query}")).unwrap();
    until("the executor counts", || log(&dev, "executor=1").body.contains("number 20\n"));
    dev.gateway.kill_dash_nine();

    let dev = Dev::start_with(dir.path(), sandbox, &options);
    let _server = HistoryServer::start(history.port(), &events);
    dev.gateway.follow(&id, "FINISHED");
    let is_stored = |reply: &http::Reply| reply.head.contains("sparkgate-log-source: store");
    let stored = |query| {
        until("the log is stored", || {
            let reply = log(&dev, query);
            is_stored(&reply) && !reply.head.contains("sparkgate-log-cut")
        });
        log(&dev, query).body
    };
    let text = stored("executor=1");
    let numbers: Vec<&str> = text.lines().filter(|line| line.starts_with("number ")).collect();
    let all: Vec<String> = (0..200).map(|n| format!("number {n}")).collect();
    assert_eq!(numbers, all, "every line once");
    assert!(text.contains("Starting executor ID 1"), "from its start");
    let driver = stored("");
    assert!(driver.contains("begins\n") && driver.contains("ends\n"), "{driver}");

    let reply = http::get(dev.gateway.address, &format!("/v1/submissions/{id}/ui/")).unwrap();
    let location = reply.head.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
    let page = location.strip_prefix(&format!("http://{history}")).unwrap();
    let app_id = page.split('/').nth(2).unwrap();
    until("the History Server shows the application", || {
        http::get(history, page).is_ok_and(|reply| reply.status == 200 && reply.body.contains(app_id))
    });
    assert!(http::get(history, page).unwrap().body.contains("counting"), "its name");
}
