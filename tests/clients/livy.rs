//! Stock clients of Livy: Airflow's operator and sensor, and pylivy, on a gateway with an access file, and the DAG of docs/integrate/livy.md on
//! one without.

use std::{fs, process::Command};

use serde_json::Value;

use crate::{
    airflow::Airflow,
    closed::Closed,
    python::{here, program, run},
};

/// Airflow, and a gateway that admits it.
struct Livy {
    airflow: Airflow,
    closed: Closed,
    good: String,
    fails: String,
    sleeps: String,
}

impl Livy {
    fn on(airflow: Airflow) -> Self {
        let closed = Closed::beside(&airflow.dev);
        let file = |name: &str, text: &str| format!("local://{}", airflow.file(name, text).display());
        let good = file("good.py", "import sys\nprint('arguments', *sys.argv[1:])\n");
        let fails = file("fails.py", "import sys\nprint('about to fail')\nsys.exit(3)\n");
        let sleeps = file("sleeps.py", "import time\ntime.sleep(600)\n");
        Self { airflow, closed, good, fails, sleeps }
    }

    /// Returns Airflow's connection: a token is the password.
    fn connection(&self) -> String {
        let Closed { livy, key, .. } = &self.closed;
        format!("livy://airflow:{key}@{}:{}", livy.ip(), livy.port())
    }

    /// Runs a DAG file; returns whether Airflow succeeded, and all that it said.
    fn run(&self, name: &str) -> (Value, String) {
        let dag = self.airflow.dag(name, &fs::read_to_string(here("livy/dags").join(name)).unwrap());
        let mut command = self.airflow.program("python");
        command.arg(here("airflow/run.py")).arg(dag).env("AIRFLOW_CONN_LIVY", self.connection());
        let (done, said) = run(command.env("GOOD_APPLICATION", &self.good).env("FAILING_APPLICATION", &self.fails));
        assert!(done, "{said}\n{}", self.closed.gateway.log());
        (results(&said).remove(0), said)
    }

    /// Returns the submission that is a batch.
    fn submission(&self, batch: &Value) -> Value {
        let end = format!("-{:04}", batch.as_i64().unwrap());
        let mut all = self.closed.submissions().into_iter();
        all.find(|submission| submission["id"].as_str().unwrap().ends_with(&end)).unwrap()
    }
}

fn results(said: &str) -> Vec<Value> {
    let lines = said.lines().filter_map(|line| line.strip_prefix("RESULT "));
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn airflows_operator_and_sensor_run_jobs_and_see_failures() {
    let livy = Livy::on(Airflow::with_database());
    let (result, said) = livy.run("jobs.py");
    assert_eq!(result["state"], "success", "{result:#}\n{said}");
    assert!(said.contains("arguments airflow 7"), "the driver's log is in that of the task: {said}");
    for task in ["waited", "deferred", "submitted"] {
        let submission = livy.submission(&result["tasks"][task]["value"]);
        assert_eq!(submission["state"], "FINISHED", "{submission:#}");
        assert!(submission["principal"].as_str().unwrap().starts_with("key:"), "{submission:#}");
    }
    let (result, said) = livy.run("fails.py");
    assert_eq!(result["state"], "failed", "{result:#}");
    let failed = livy.closed.submissions().into_iter().filter(|submission| submission["state"] == "FAILED");
    let failed: Vec<Value> = failed.collect();
    assert_eq!(failed.len(), 2, "{failed:#?}");
    for submission in failed {
        let reason = format!("{} is FAILED: {}", submission["id"].as_str().unwrap(), "the driver exited with code 3");
        assert!(said.contains(&reason), "{reason}: {said}");
    }
    assert!(said.contains("about to fail"), "{said}");
}

#[test]
fn airflows_operator_kills_its_batch() {
    let livy = Livy::on(Airflow::start());
    let mut command = livy.airflow.program("python");
    command.arg(here("livy/operator_kill.py")).arg(&livy.sleeps).env("AIRFLOW_CONN_LIVY", livy.connection());
    let (done, said) = run(&mut command);
    assert!(done, "{said}\n{}", livy.closed.gateway.log());
    let result = results(&said).remove(0);
    assert!(result["gone"].as_str().unwrap().contains("not found"), "{result}");
    until_killed(&livy, &result["batch"]);
}

#[test]
fn pylivy_runs_a_job_sees_a_failure_and_kills() {
    let livy = Livy::on(Airflow::start());
    let mut command: Command = program("SPARKGATE_PYLIVY", "python");
    command.arg(here("livy/pylivy.py")).arg(format!("http://{}", livy.closed.livy)).arg(&livy.closed.key);
    let (done, said) = run(command.args([&livy.good, &livy.fails, &livy.sleeps]));
    assert!(done, "{said}\n{}", livy.closed.gateway.log());
    let results = results(&said);
    let lines = |result: &Value| -> Vec<String> { serde_json::from_value(result["log"].clone()).unwrap() };
    let [good, fails, killed] = results.as_slice() else { panic!("{said}") };
    assert_eq!(good["state"], "success", "{good:#}");
    assert!(lines(good).iter().any(|line| line == "arguments x y"), "{good:#}");
    assert_eq!(good["last"].as_array().unwrap().len(), 2);
    assert_eq!(fails["state"], "dead", "{fails:#}");
    assert!(lines(fails).last().unwrap().contains("is FAILED: the driver exited with code 3"), "{fails:#}");
    assert_eq!(
        (&killed["gone"], &killed["listed"]),
        (&true.into(), &Value::from(vec![good["id"].clone(), fails["id"].clone()]))
    );
    until_killed(&livy, &killed["id"]);
}

fn until_killed(livy: &Livy, batch: &Value) {
    sparkgate_testing::gateway::until("the driver is gone", || livy.submission(batch)["finishedAt"].is_string());
    assert_eq!(livy.submission(batch)["state"], "KILLED");
}

#[test]
fn the_dag_of_the_page_runs() {
    let airflow = Airflow::with_database();
    let dags = airflow.dags(&["docs/integrate/livy.md"]);
    let connection = format!("livy://{}", airflow.dev.livy);
    for result in airflow.run_dags(&dags, &[("AIRFLOW_CONN_LIVY_DEFAULT", connection)]) {
        assert_eq!(result["state"], "success", "{result:#}");
    }
    assert_eq!(airflow.get("/v1/submissions?state=FINISHED&total=true")["total"], 1);
}
