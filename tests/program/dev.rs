//! `sparkgate dev` with a real Spark: drivers with Spark's own Kubernetes backend and real executors, as local processes.

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt, path::Path, process::Command, sync::Mutex};

use serde_json::{Value, json};
use sparkgate_testing::{
    gateway::{Gateway, sparkgate, until},
    http,
    process::free_address,
};

/// One test at a time: each runs several JVMs, and the machine may be small.
pub(crate) static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const PI: &str = "local:///opt/spark/examples/src/main/python/pi.py";

pub(crate) struct Dev {
    pub(crate) gateway: Gateway,
    sandbox: SocketAddr,
}

impl Dev {
    /// Starts a `dev` on addresses of its own, with its files below `dir`.
    pub(crate) fn start(dir: &Path, sandbox: SocketAddr) -> Self {
        Self::start_with(dir, sandbox, &[])
    }

    pub(crate) fn start_with(dir: &Path, sandbox: SocketAddr, options: &[&str]) -> Self {
        // If this runs as root, Postgres runs as another account.
        fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).unwrap();
        let address = free_address();
        let mut command = sparkgate();
        command.args(["dev", "--listen", &address.to_string(), "--sandbox-listen", &sandbox.to_string(), "--dir"]);
        command.arg(dir).args(options).env("SPARK_HOME", std::env::var("SPARK_HOME").unwrap());
        Self { gateway: Gateway::start(command, address, true), sandbox }
    }

    /// Returns the log of a submission's driver, from the Kubernetes API.
    pub(crate) fn driver_log(&self, id: &str) -> String {
        let selector = format!("spark-role%3Ddriver%2Csparkgate.dev%2Fsubmission-id%3D{id}");
        let path = format!("/api/v1/namespaces/default/pods?labelSelector={selector}");
        let pods = http::get(self.sandbox, &path).unwrap().json();
        let name = pods["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
        http::get(self.sandbox, &format!("/api/v1/namespaces/default/pods/{name}/log")).unwrap().body
    }
}

fn small(name: &str) -> Value {
    json!({"spark.app.name": name, "spark.executor.instances": "2", "spark.driver.memory": "512m",
        "spark.executor.memory": "512m"})
}

/// Returns the processes of this machine whose command line or environment contains the application's name.
fn processes_of(name: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    texts.filter(|command| command.contains(name)).map(|command| command.replace('\0', " ")).collect()
}

/// Writes a Python application that sleeps, with a name by which its processes are found.
fn sleeper(dir: &Path, name: &str) -> String {
    let path = dir.join(format!("{name}.py"));
    let code = "import time\nfrom pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()\n\
                print('ready', flush=True)\ntime.sleep(600)\n";
    fs::write(&path, code).unwrap();
    format!("local://{}", path.display())
}

#[test]
fn pi_with_two_executors_goes_from_submitted_to_finished() {
    let _guard = ONE_AT_A_TIME.lock();
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), free_address());
    let id = dev.gateway.submit(PI, &["10"], &small("pi"));
    assert_eq!(dev.gateway.follow(&id, "FINISHED"), ["SUBMITTED", "RUNNING", "FINISHED"]);
    let log = dev.driver_log(&id);
    assert!(log.contains("Pi is roughly 3.1"), "{log}");
    assert_eq!(log.matches("Registered executor").count(), 2, "{log}");
}

#[test]
fn several_jobs_at_once_where_one_fails_and_one_is_killed() {
    let _guard = ONE_AT_A_TIME.lock();
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), free_address());
    let name = format!("sleeper-{}", uuid::Uuid::new_v4().simple());
    let sleeping = dev.gateway.submit(&sleeper(dir.path(), &name), &[], &small("sleeper"));
    let failing = dir.path().join("fails.py");
    fs::write(&failing, "import sys\nsys.exit(3)\n").unwrap();
    let failing = dev.gateway.submit(&format!("local://{}", failing.display()), &[], &small("fails"));
    let pi = dev.gateway.submit(PI, &["4"], &small("pi"));

    dev.gateway.follow(&failing, "FAILED");
    let message = dev.gateway.status(&failing)["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "the driver exited with code 3 (Error)");
    until("the sleeper sleeps", || dev.driver_log(&sleeping).contains("ready"));
    assert!(!processes_of(&name).is_empty());
    assert_eq!(dev.gateway.kill(&sleeping)["success"], true);
    dev.gateway.follow(&sleeping, "KILLED");
    until("its processes are gone", || processes_of(&name).is_empty());
    dev.gateway.follow(&pi, "FINISHED");
}

#[test]
fn a_job_survives_kill_dash_nine_of_its_gateway() {
    let _guard = ONE_AT_A_TIME.lock();
    let dir = tempfile::tempdir().unwrap();
    let sandbox = free_address();
    let dev = Dev::start(dir.path(), sandbox);
    let id = dev.gateway.submit(PI, &["20"], &small("pi"));
    dev.gateway.follow(&id, "RUNNING");
    dev.gateway.kill_dash_nine();
    let dev = Dev::start(dir.path(), sandbox);
    dev.gateway.follow(&id, "FINISHED");
    assert!(dev.driver_log(&id).contains("Pi is roughly 3.1"));
    assert!(dev.gateway.terminate(), "Ctrl-C ends all of it");
    assert!(http::get(sandbox, "/readyz").is_err(), "the sandbox too");

    let dev = Dev::start(dir.path(), sandbox);
    dev.gateway.follow(&id, "FINISHED");
    let other = dev.gateway.submit(PI, &["1"], &small("pi"));
    dev.gateway.follow(&other, "FINISHED");
}

/// Returns the process id in the first line of a file.
fn pid(file: &Path) -> String {
    fs::read_to_string(file).unwrap().lines().next().unwrap().to_owned()
}

fn runs(pid: &str) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|command| !command.is_empty())
}

#[test]
fn a_second_dev_is_refused_and_all_parts_end_when_one_ends() {
    let _guard = ONE_AT_A_TIME.lock();
    for victim in ["sandbox/pid", "postgres/data/postmaster.pid"] {
        let dir = tempfile::tempdir().unwrap();
        let sandbox = free_address();
        let dev = Dev::start(dir.path(), sandbox);
        let pids = ["sandbox/pid", "postgres/data/postmaster.pid"].map(|file| pid(&dir.path().join(file)));

        let second = sparkgate().args(["dev", "--listen", "127.0.0.1:0", "--dir"]).arg(dir.path()).output().unwrap();
        let said = String::from_utf8_lossy(&second.stderr).into_owned();
        assert_eq!(second.status.code(), Some(1), "{said}");
        assert!(said.contains("another sparkgate dev (pid ") && said.contains("uses the directory"), "{said}");

        let status = Command::new("kill").args(["-9", &pid(&dir.path().join(victim))]).status().unwrap();
        assert!(status.success());
        let (code, log) = dev.gateway.ended();
        assert_eq!(code, Some(1), "{log}");
        assert_eq!(log.matches("ended by itself, so everything ends").count(), 1, "{log}");
        until("all of it ends", || !pids.iter().any(|pid| runs(pid)));
    }
}

/// Runs the client with `dev`'s directory, and returns what it prints.
pub(crate) fn client(dev: &Dev, dir: &Path, arguments: &[&str]) -> String {
    let mut client = sparkgate();
    client
        .args(arguments)
        .env("SPARKGATE_URL", format!("http://{}", dev.gateway.address))
        .env("SPARKGATE_DEV_DIR", dir);
    let output = client.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn only_clients_with_the_token_use_a_dev_that_requires_one() {
    let _guard = ONE_AT_A_TIME.lock();
    let dir = tempfile::tempdir().unwrap();
    let sandbox = free_address();
    let dev = Dev::start_with(dir.path(), sandbox, &["--require-token"]);
    for (address, path) in [(dev.gateway.address, "/v1/submissions"), (sandbox, "/api/v1/namespaces/default/pods")] {
        assert_eq!(http::get(address, path).unwrap().status, 401, "{path}");
    }
    for file in ["token", "sandbox-token", "kubeconfig", "access.yaml"] {
        let mode = fs::metadata(dir.path().join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    // The driver and its executors use the sandbox's token.
    client(&dev, dir.path(), &["submit", "--wait", "--conf", "spark.executor.instances=1", PI, "2"]);
    let token = fs::read_to_string(dir.path().join("token")).unwrap();
    let (url, key) = token.trim().split_once(' ').unwrap();
    assert_eq!(url, format!("http://{}", dev.gateway.address));
    assert!(dev.gateway.terminate(), "Ctrl-C ends all of it");

    let dev = Dev::start_with(dir.path(), sandbox, &["--require-token"]);
    assert!(
        fs::read_to_string(dir.path().join("token")).unwrap().ends_with(&format!(" {key}\n")),
        "it is the same key"
    );
    assert!(client(&dev, dir.path(), &["list"]).contains("FINISHED"));
}
