//! The client's commands with the real gateway: `tests/program/cli` plays the faults; this test shows that both sides interpret
//! the protocol in the same way.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;
use sparkgate_testing::{gateway::sparkgate, process::free_address};

use crate::dev::{Dev, ONE_AT_A_TIME};

struct Client<'a>(&'a Dev);

impl Client<'_> {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = sparkgate();
        command.args(words).env("SPARKGATE_URL", self.0.gateway.address.to_string()).env("SPARK_USER", "alice");
        command
    }

    fn ended(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } = self.command(words).output().unwrap();
        (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
    }

    /// Returns the output of a command that has to succeed.
    fn output(&self, words: &[&str]) -> String {
        let (code, stdout, stderr) = self.ended(words);
        assert_eq!(code, Some(0), "{words:?}: {stderr}");
        stdout.trim_end().to_owned()
    }
}

/// Writes a Python application to `dir`; returns its URL.
fn application(dir: &Path, name: &str, code: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, code).unwrap();
    format!("local://{}", path.display())
}

#[test]
fn the_client_submits_follows_reads_and_kills_jobs() {
    let _guard = ONE_AT_A_TIME.lock();
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), free_address());
    let client = Client(&dev);

    let fails = application(dir.path(), "fails.py", "import sys\nprint('the last word')\nsys.exit(3)\n");
    let (code, stdout, stderr) = client.ended(&["submit", "--wait", "--label", "team=data", "--name", "Fails", &fails]);
    assert_eq!(code, Some(3), "{stderr}");
    let id = stdout.trim_end();
    assert!(stderr.lines().any(|line| line.starts_with("FAILED after ")), "{stderr}");
    assert!(client.output(&["logs", id]).contains("the last word"));
    let described = client.output(&["status", id]);
    assert!(described.contains("State:       FAILED (after ") && described.contains("exit code 3"), "{described}");
    let events = client.output(&["events", id]);
    let states: Vec<&str> = events.lines().map(|line| line.split_whitespace().nth(2).unwrap()).collect();
    assert_eq!((states.first(), states.last()), (Some(&"QUEUED"), Some(&"FAILED")), "{events}");

    let sleeps = application(dir.path(), "sleeps.py", "import time\nprint('ready', flush=True)\ntime.sleep(600)\n");
    let sleeper = client.output(&["submit", "--unique-name", "--name", "Sleeper", &sleeps]);
    assert_eq!(client.output(&["wait", "--for", "running", &sleeper]), "RUNNING");
    let (code, _, stderr) = client.ended(&["submit", "--unique-name", "--name", "Sleeper", &sleeps]);
    assert!(code == Some(1) && stderr.starts_with("error: "), "the name is taken: {stderr}");

    let listed = client.output(&["list", "--owner", "alice", "--label", "team=data"]);
    assert!(listed.contains(id) && !listed.contains(&sleeper), "{listed}");
    let running: Value = serde_json::from_str(&client.output(&["list", "--state", "RUNNING", "-o", "json"])).unwrap();
    assert_eq!((running["items"].as_array().unwrap().len(), &running["items"][0]["id"]), (1, &sleeper.clone().into()));

    assert_eq!(client.output(&["kill", "--wait", &sleeper]), format!("{sleeper} KILLED"));
    assert_eq!(client.ended(&["wait", &sleeper]).0, Some(1));

    // A refused option is named as it was written.
    let (code, _, stderr) = client.ended(&["submit", "--executor-memory", "2g", "--master", "yarn", &fails]);
    assert!(code == Some(1) && stderr.contains("`--master`: This gateway has no YARN"), "{stderr}");
}

#[test]
fn local_files_are_uploaded_and_reach_the_driver_and_its_executors() {
    let _guard = ONE_AT_A_TIME.lock();
    let dir = tempfile::tempdir().unwrap();
    let dev = Dev::start(dir.path(), free_address());
    let client = Client(&dev);
    let project = tempfile::tempdir().unwrap();
    let job = "import sys, library\nfrom pyspark import SparkFiles\nfrom pyspark.sql import SparkSession\n\
               context = SparkSession.builder.getOrCreate().sparkContext\n\
               def seen(_):\n    import library\n    return library.answer() + open(SparkFiles.get('conf.yaml')).read()\n\
               print('seen', sys.argv[1:], context.parallelize([1], 1).map(seen).collect())\n";
    fs::write(project.path().join("my job.py"), job).unwrap();
    fs::write(project.path().join("library.py"), "def answer():\n    return 'forty-two '\n").unwrap();
    fs::write(project.path().join("conf.yaml"), "a: b").unwrap();
    let submit = || {
        let words = ["submit", "--wait", "--conf", "spark.executor.instances=1", "--conf", "spark.driver.memory=512m"];
        let files = ["--executor-memory", "512m", "--py-files", "library.py", "--files", "conf.yaml", "my job.py", "x"];
        let ended = client.command(&words).args(files).current_dir(project.path()).output().unwrap();
        let stderr = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(0), "{stderr}");
        (String::from_utf8(ended.stdout).unwrap().trim_end().to_owned(), stderr)
    };
    let (id, stderr) = submit();
    assert_eq!(stderr.lines().filter(|line| line.starts_with("uploaded ")).count(), 3, "{stderr}");
    let log = client.output(&["logs", &id]);
    assert!(log.contains("seen ['x'] ['forty-two a: b']"), "{log}");

    let (_, stderr) = submit();
    assert!(!stderr.contains("uploaded"), "the gateway has them: {stderr}");
    let (code, _, stderr) = client.ended(&["submit", "no-such-job.py"]);
    assert!(code == Some(2) && stderr.contains("there is no file no-such-job.py on this machine"), "{stderr}");
    assert!(!stderr.contains("file.upload.path"), "{stderr}");
}
