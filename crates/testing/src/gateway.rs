//! `sparkgate` processes that end with their test.

use std::{
    fs::File,
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::spawn_blocking;

use crate::http;

const LOG: &str = "log";

/// Returns the path of the program, which Cargo names to the tests of its package.
///
/// # Panics
/// Cargo doesn't run the test.
pub fn program() -> PathBuf {
    std::env::var_os("CARGO_BIN_EXE_sparkgate").expect("`cargo test` runs the tests of the program").into()
}

/// Returns the program, with no input and no kubeconfig of the user.
pub fn sparkgate() -> Command {
    let mut command = Command::new(program());
    command.stdin(Stdio::null()).env_remove("KUBECONFIG");
    command
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// A running gateway (`serve` or `dev`) on `address`.
pub struct Gateway {
    pub address: SocketAddr,
    child: Child,
    /// The directory of the log, which is kept if the test fails.
    dir: Option<TempDir>,
    /// Whether to end it with SIGTERM instead of SIGKILL: `dev` has to end its child processes.
    gently: bool,
}

impl Gateway {
    /// Starts the command, which listens on `address`, and waits until it is ready.
    pub fn start(mut command: Command, address: SocketAddr, gently: bool) -> Self {
        let dir = TempDir::with_prefix("sparkgate-test-").unwrap();
        let file = File::create(dir.path().join(LOG)).unwrap();
        let child = command.stderr(file.try_clone().unwrap()).stdout(file).spawn().unwrap();
        let mut gateway = Self { address, child, dir: Some(dir), gently };
        until("the gateway is ready", || {
            assert!(gateway.child.try_wait().unwrap().is_none(), "it ended: {}", gateway.log());
            http::get(address, "/readyz").is_ok_and(|reply| reply.status == 200)
        });
        gateway
    }

    /// Starts a gateway that SIGKILL may end, without blocking the runtime.
    ///
    /// # Panics
    /// It ends before it is ready.
    pub async fn serve(command: Command, address: SocketAddr) -> Self {
        spawn_blocking(move || Self::start(command, address, false)).await.unwrap()
    }

    /// Returns the id of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns what it has logged.
    pub fn log(&self) -> String {
        let log = self.dir.as_ref().map(|dir| std::fs::read_to_string(dir.path().join(LOG)));
        log.and_then(Result::ok).unwrap_or_default()
    }

    /// Sends SIGKILL, at any point of its work.
    pub fn kill_dash_nine(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until it ends by itself; returns its exit code and its log.
    pub fn ended(mut self) -> (Option<i32>, String) {
        until("the gateway ends", || self.child.try_wait().unwrap().is_some());
        (self.child.wait().unwrap().code(), self.log())
    }

    /// Sends SIGTERM; returns whether it exited with 0.
    pub fn terminate(mut self) -> bool {
        terminate(&self.child);
        self.child.wait().unwrap().success()
    }

    /// Submits a driver that runs `resource`; returns the submission's id.
    pub fn submit(&self, resource: &str, args: &[&str], properties: &Value) -> String {
        let body = json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appResource": resource,
            "mainClass": "org.apache.spark.deploy.PythonRunner", "appArgs": args, "sparkProperties": properties,
            "environmentVariables": {}});
        let mut id = None;
        // Retries as a client should: on a busy machine opening a database connection may take longer than a
        // request waits for one.
        until("the submission is accepted", || {
            let reply = http::post(self.address, "/v1/submissions/create", &body.to_string()).unwrap();
            if reply.status == 503 && reply.head.to_ascii_lowercase().contains("retry-after:") {
                return false;
            }
            assert_eq!(reply.status, 200, "{}", reply.body);
            id = reply.json()["submissionId"].as_str().map(str::to_owned);
            true
        });
        id.unwrap()
    }

    /// Returns the status of a submission in Spark's protocol.
    pub fn status(&self, id: &str) -> Value {
        http::get(self.address, &format!("/v1/submissions/status/{id}")).unwrap().json()
    }

    /// Kills a submission; returns the answer of Spark's protocol.
    pub fn kill(&self, id: &str) -> Value {
        http::post(self.address, &format!("/v1/submissions/kill/{id}"), "").unwrap().json()
    }

    /// Waits for a driver state; returns all states seen until then, without repetitions.
    pub fn follow(&self, id: &str, last: &str) -> Vec<String> {
        let mut states: Vec<String> = Vec::new();
        until(&format!("{id} is {last}"), || {
            let status = self.status(id);
            let state = status["driverState"].as_str().unwrap_or("none").to_owned();
            if states.last() != Some(&state) {
                states.push(state.clone());
            }
            let ended = ["FINISHED", "FAILED", "KILLED", "ERROR"].contains(&state.as_str());
            assert!(!ended || state == last, "{status:#}\n{}", self.log());
            state == last
        });
        states
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        if self.gently && self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            terminate(&self.child);
            let _ = self.child.wait();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking()
            && let Some(dir) = self.dir.take()
        {
            eprintln!("the gateway's log: {}", dir.keep().join(LOG).display());
        }
    }
}

fn terminate(child: &Child) {
    Command::new("kill").arg(child.id().to_string()).status().unwrap();
}

/// Waits for a condition, as long as a Spark job may take on a slow machine beside other tests.
pub fn until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(360);
    while !done() {
        assert!(Instant::now() < deadline, "not within six minutes: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
