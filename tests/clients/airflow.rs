//! Airflow: the DAGs of docs/integrate/airflow.md, run by Airflow itself, and its Spark hook.

use std::{fs, path::PathBuf, process::Command, sync::OnceLock};

use serde_json::Value;
use sparkgate_testing::{gateway::until, http};

use crate::{
    closed::Closed,
    dev::Dev,
    markdown,
    python::{here, program, run},
};

/// An Airflow that is connected to a gateway.
pub(crate) struct Airflow {
    pub(crate) dev: Dev,
}

impl Airflow {
    pub(crate) fn start() -> Self {
        Self { dev: Dev::with_spark() }
    }

    pub(crate) fn with_database() -> Self {
        static MIGRATED: OnceLock<Vec<u8>> = OnceLock::new();
        let airflow = Self::start();
        let database = airflow.dev.dir.path().join("airflow/airflow.db");
        // To copy it is quicker than to migrate each.
        let migrated = MIGRATED.get_or_init(|| {
            let (done, said) = run(airflow.program("airflow").args(["db", "migrate"]));
            assert!(done, "{said}");
            fs::read(&database).unwrap()
        });
        fs::create_dir_all(database.parent().unwrap()).unwrap();
        fs::write(&database, migrated).unwrap();
        airflow
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.dev.dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes a DAG: Airflow runs only files in its folder of DAGs.
    pub(crate) fn dag(&self, name: &str, text: &str) -> PathBuf {
        fs::create_dir_all(self.dev.dir.path().join("airflow/dags")).unwrap();
        self.file(&format!("airflow/dags/{name}"), text)
    }

    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = program("SPARKGATE_AIRFLOW", name);
        let (home, address) = (self.dev.dir.path().join("airflow"), self.dev.gateway.address);
        let spark = std::env::var("SPARK_HOME").unwrap();
        let path = command.get_envs().find(|(key, _)| *key == "PATH").and_then(|(_, path)| path).unwrap().to_owned();
        command
            .env("AIRFLOW_HOME", home)
            .env("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
            .env("AIRFLOW_CONN_SPARKGATE", self.dev.url())
            .env("AIRFLOW_CONN_SPARK", spark_connection(address.port()))
            .env("PATH", format!("{spark}/bin:{}", path.to_string_lossy()))
            .env("SPARK_HOME", spark)
            .env_remove("SPARK_CONF_DIR");
        command
    }

    /// Returns the results that a script prints.
    fn results(&self, command: &mut Command) -> Vec<String> {
        let (done, said) = run(command);
        assert!(done, "{said}\n{}", self.dev.gateway.log());
        said.lines().filter_map(|line| line.strip_prefix("RESULT ")).map(str::to_owned).collect()
    }

    /// Writes a jar without entries: Spark copies the application's own jar, so the file has to exist.
    fn jar(&self) -> PathBuf {
        let jar = self.file("app.jar", "");
        fs::write(&jar, [&b"PK\x05\x06"[..], &[0; 18]].concat()).unwrap();
        jar
    }

    /// Writes the DAGs of pages. The job doesn't matter to Airflow; it takes a moment.
    pub(crate) fn dags(&self, pages: &[&str]) -> Vec<PathBuf> {
        let (script, jar) = (self.file("ends.py", "print('done')\n"), self.jar());
        let blocks = pages.iter().flat_map(|path| markdown::blocks(&markdown::page(path), "python"));
        let write = |(number, text): (usize, String)| {
            // The sandbox's Spark doesn't have the examples' jar; this class is Spark's own launcher of a Python file.
            let text = text
                .replace("local:///opt/spark/examples/src/main/python/pi.py", &format!("local://{}", script.display()))
                .replace("local:///opt/spark/examples/jars/spark-examples.jar", &format!("local://{}", jar.display()))
                .replace("org.apache.spark.examples.SparkPi", "org.apache.spark.deploy.PythonRunner")
                .replace("application_args=[\"10\"]", &format!("application_args=[\"{}\", \"\"]", script.display()));
            self.dag(&format!("page{number}.py"), &text)
        };
        blocks.enumerate().map(write).collect()
    }

    pub(crate) fn run_dags(&self, files: &[PathBuf], environment: &[(&str, String)]) -> Vec<Value> {
        let mut command = self.program("python");
        command.arg(here("airflow/run.py")).args(files).envs(environment.iter().map(|(key, value)| (key, value)));
        let results = self.results(&mut command);
        assert_eq!(results.len(), files.len());
        results.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        http::get(self.dev.gateway.address, path).unwrap().json()
    }
}

/// Returns the connection of docs/integrate/airflow.md, with this gateway's port.
fn spark_connection(port: u16) -> String {
    let page = markdown::page("docs/integrate/airflow.md");
    let line = page.lines().find_map(|line| line.strip_prefix("AIRFLOW_CONN_SPARK="));
    let connection: Value = serde_json::from_str(line.unwrap().trim_matches('\'')).unwrap();
    connection.to_string().replace("6066", &port.to_string()).replace("sparkgate.example", "127.0.0.1")
}

/// Returns the connection of docs/integrate/airflow.md with a token, with this gateway's port and a token of it.
fn connection_with_token(port: u16, token: &str) -> String {
    let page = markdown::page("docs/integrate/airflow.md");
    let mut lines = page.lines().filter_map(|line| line.strip_prefix("AIRFLOW_CONN_SPARKGATE='"));
    let mut connection: Value = serde_json::from_str(lines.next().unwrap().trim_end_matches('\'')).unwrap();
    let header = connection["extra"]["Authorization"].as_str().unwrap();
    connection["extra"]["Authorization"] = header.replace("sg_…", token).into();
    // The page's gateway has TLS.
    connection["schema"] = "http".into();
    connection["port"] = port.into();
    connection["host"] = "127.0.0.1".into();
    connection.to_string()
}

#[test]
fn the_dags_of_the_page_run_on_a_gateway_with_an_access_file() {
    let airflow = Airflow::with_database();
    let closed = Closed::beside(&airflow.dev);
    let dags = airflow.dags(&["docs/integrate/airflow.md"]);
    assert!(dags.len() >= 2, "the page has DAGs");
    assert_eq!(http::get(closed.gateway.address, "/v1/submissions").unwrap().status, 401);
    let environment = [
        ("AIRFLOW_CONN_SPARKGATE", connection_with_token(closed.gateway.address.port(), &closed.key)),
        ("AIRFLOW_CONN_SPARK", spark_connection(closed.listener.port())),
    ];
    for result in airflow.run_dags(&dags, &environment) {
        assert_eq!(result["state"], "success", "{result:#}\n{}", closed.gateway.log());
    }
    let submissions = closed.submissions();
    let of_spark = submissions.iter().filter(|submission| submission["principal"] == "listener:airflow");
    let of_http = submissions.iter().filter(|submission| submission["principal"].as_str().unwrap().starts_with("key:"));
    assert_eq!((of_http.count(), of_spark.count(), submissions.len()), (1, 1, 2), "{submissions:#?}");
    assert!(submissions.iter().all(|submission| submission["state"] == "FINISHED"), "{submissions:#?}");
}

#[test]
fn sensors_detect_failures_and_a_lost_reply_submits_once() {
    let airflow = Airflow::with_database();
    let fails = airflow.file("fails-application.py", "import sys\nsys.exit(3)\n");
    let good = airflow.file("good-application.py", "import time\ntime.sleep(3)\n");
    let environment = [
        ("FAILING_APPLICATION", format!("local://{}", fails.display())),
        ("GOOD_APPLICATION", format!("local://{}", good.display())),
    ];
    let dags = ["fails.py", "deferred.py"]
        .map(|name| airflow.dag(name, &fs::read_to_string(here("airflow/dags").join(name)).unwrap()));
    let results = airflow.run_dags(&dags, &environment);

    let (failed, deferred) = (&results[0], &results[1]);
    assert_eq!((&failed["state"], &failed["tasks"]["finished"]["state"]), (&"failed".into(), &"failed".into()));
    let submit = &failed["tasks"]["submit"];
    assert_eq!((&submit["state"], &submit["tries"]), (&"success".into(), &2.into()), "{failed:#}");
    // 200: the second answer returns the submission that the first request created.
    assert_eq!((&submit["value"]["id"], &submit["value"]["status"]), (&submit["value"]["first"], &200.into()));
    let failures = airflow.get("/v1/submissions?name=fails&total=true");
    assert_eq!((&failures["total"], &failures["items"][0]["state"]), (&1.into(), &"FAILED".into()), "{failures:#}");

    assert_eq!(deferred["state"], "success", "{deferred:#}");
}

#[test]
fn the_spark_hook_submits_and_kills() {
    let airflow = Airflow::start();
    let (script, jar) = (airflow.file("sleeps.py", "import time\ntime.sleep(600)\n"), airflow.jar());
    let mut command = airflow.program("python");
    command.arg(here("airflow/hook.py")).arg(format!("local://{}", jar.display())).arg(script);
    let id = airflow.results(&mut command).remove(0);
    let path = format!("/v1/submissions/{id}");
    until("the driver is gone", || airflow.get(&path)["finishedAt"].is_string());
    let killed = airflow.get(&path);
    assert_eq!((&killed["state"], &killed["name"]), (&"KILLED".into(), &"hooked".into()), "{killed:#}");
}
