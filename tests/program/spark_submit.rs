//! Spark's own `spark-submit` as a client of the REST protocol.

use std::{path::PathBuf, process::Command};

use sparkgate_testing::{
    gateway::{Gateway, until},
    process::free_address,
};

use crate::dev::{Dev, ONE_AT_A_TIME};

fn home(variable: &str) -> PathBuf {
    PathBuf::from(std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run `make test`")))
}

/// Runs spark-submit; returns its output.
fn spark_submit(home: &PathBuf, gateway: &Gateway, args: &[&str]) -> String {
    let mut command = Command::new(home.join("bin/spark-submit"));
    command.env("SPARK_HOME", home).env_remove("SPARK_CONF_DIR");
    command.args(["--master", &format!("spark://{}", gateway.address)]).args(args);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    said.into_owned()
}

/// Submits, queries and kills with one version of Spark's client.
fn converse(variable: &str) {
    let _guard = ONE_AT_A_TIME.lock();
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), free_address());
    let home = home(variable);
    let app = dir.path().join("app.py");
    std::fs::write(&app, "import time\nprint('started', flush=True)\ntime.sleep(600)\n").unwrap();
    // A jar without entries: Spark copies the application's own jar, so the file has to exist.
    let jar = dir.path().join("app.jar");
    std::fs::write(&jar, [&b"PK\x05\x06"[..], &[0; 18]].concat()).unwrap();
    let jar = format!("local://{}", jar.display());
    // Its REST client accepts JVM applications only: this class is Spark's own launcher of a Python file.
    let class = "org.apache.spark.deploy.PythonRunner";
    let mode = ["--deploy-mode", "cluster", "--conf", "spark.master.rest.enabled=true"];
    let key = ["--conf", "spark.sparkgate.idempotencyKey=once"];
    let what = ["--name", "from spark-submit", "--class", class, &jar];
    let submit =
        || spark_submit(&home, &dev.gateway, &[&mode[..], &key[..], &what[..], &[app.to_str().unwrap(), ""]].concat());
    let said = submit();
    assert!(said.contains("Submission successfully created as driver-"), "{said}");
    let submitted = said.contains("is now SUBMITTED") || said.contains("is now RUNNING");
    assert!(said.contains("State of driver driver-") && submitted, "{said}");
    let id = said.split("created as ").nth(1).unwrap().split('.').next().unwrap().to_owned();

    dev.gateway.follow(&id, "RUNNING");
    // The container runs, but maybe not the application yet: an application that dies at once must not look like a
    // failed kill.
    until("the application runs", || dev.driver_log(&id).contains("started"));
    spark_submit(&home, &dev.gateway, &["--status", &id]);
    let said = spark_submit(&home, &dev.gateway, &["--kill", &id]);
    let killed = said.contains(&format!("{id} is killed successfully."));
    assert!(killed, "{said}\n{:#}\nthe driver's log:\n{}", dev.gateway.status(&id), dev.driver_log(&id));
    dev.gateway.follow(&id, "KILLED");
    let said = spark_submit(&home, &dev.gateway, &["--kill", &id]);
    assert!(said.contains("has already finished or does not exist"), "{said}");
    let said = submit();
    assert!(said.contains(&format!("created as {id}.")), "the same request under the same key: {said}");
}

#[test]
fn spark_submit_4_3_submits_queries_and_kills() {
    converse("SPARK_HOME");
}

#[test]
fn spark_submit_3_5_submits_queries_and_kills() {
    converse("SPARK_HOME_3_5");
}
