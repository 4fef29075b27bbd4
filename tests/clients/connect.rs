//! Sessions of Spark Connect: `PySpark`'s own client, two replicas behind a proxy, and a real driver.

mod assistant;

use std::{
    fs,
    net::SocketAddr,
    process::{Child, Command, Stdio},
};

use serde_json::json;
use sparkgate_testing::{
    database,
    fault_proxy::FaultProxy,
    gateway::{Gateway, sparkgate, until},
    process::free_address,
};

use self::assistant::Assistant;
use crate::{
    dev::Dev,
    python::{here, program},
};

/// A driver without executors: Spark's tasks run in it.
const LOCAL: &str = "spark.kubernetes.driver.master local[2]\nspark.driver.memory 1g\n";

/// A replica, and where its clients of Spark Connect connect.
struct Replica {
    gateway: Gateway,
    connect: SocketAddr,
}

struct Site {
    dev: Dev,
    database: String,
    /// The port of the proxy.
    door: u16,
    key: String,
}

impl Site {
    fn new(door: u16) -> Self {
        let dev = Dev::with_spark();
        let name = format!("connect_{}", uuid::Uuid::new_v4().simple());
        let database = tokio::runtime::Runtime::new().unwrap().block_on(database::create(&name));
        let access = "authentication: {}\ntenants: {analytics: {namespaces: [default]}}\n";
        fs::write(dev.dir.path().join("access.yaml"), access).unwrap();
        let defaults = fs::read_to_string(dev.dir.path().join("dev/spark-defaults.conf")).unwrap();
        // Functions in Python need PyArrow, which the packages of the client have.
        let python = program("SPARKGATE_PYSPARK_CLIENT", "python");
        let python = format!("spark.kubernetes.driverEnv.PYSPARK_PYTHON {}\n", python.get_program().display());
        fs::write(dev.dir.path().join("spark-defaults.conf"), format!("{defaults}\n{LOCAL}{python}")).unwrap();
        Self { dev, database, door, key: String::new() }
    }

    fn replica(&self) -> Replica {
        let (address, connect, dir) = (free_address(), free_address(), self.dev.dir.path());
        let mut command = self.with_database(&["serve", "--listen", &address.to_string()]);
        command.args(["--connect-listen", &connect.to_string()]);
        command.arg("--connect-url").arg(format!("sc://localhost:{}", self.door));
        command.arg("--access-file").arg(dir.join("access.yaml"));
        command.arg("--kubeconfig").arg(dir.join("dev/kubeconfig"));
        command.arg("--spark-defaults").arg(dir.join("spark-defaults.conf"));
        Replica { gateway: Gateway::start(command, address, true), connect }
    }

    fn with_database(&self, words: &[&str]) -> Command {
        let mut command = sparkgate();
        command.args(words).env("SPARKGATE_DATABASE_URL", &self.database);
        command
    }

    fn create_key(&mut self) {
        let words = ["bootstrap-key", "--role", "submitter", "--tenant", "analytics"];
        let created = self.with_database(&words).output().unwrap();
        assert!(created.status.success(), "{}", String::from_utf8_lossy(&created.stderr));
        self.key = String::from_utf8(created.stdout).unwrap().trim().to_owned();
    }

    /// Returns the program as the client of a replica.
    fn client(&self, replica: &Replica, words: &[&str]) -> Command {
        let mut command = sparkgate();
        command.args(words).env("SPARKGATE_URL", format!("http://{}", replica.gateway.address));
        command.env("SPARKGATE_TOKEN", &self.key);
        command
    }

    /// Runs the script in the session of a name; returns its results.
    fn run(&self, replica: &Replica, session: &str, words: &[&str]) -> Vec<String> {
        let output = self.begin(replica, session, words).wait_with_output().unwrap();
        let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{said}{errors}\n{}", replica.gateway.log());
        results(&said)
    }

    /// Returns the script as a program that opens its session with the Python package.
    fn packaged(&self, replica: &Replica) -> Command {
        let mut command = program("SPARKGATE_PYSPARK_CLIENT", "python");
        command.arg(here("connect/session.py")).arg("package");
        command.env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/clients/python/src"));
        command.env("SPARKGATE_URL", format!("http://{}", replica.gateway.address)).env("SPARKGATE_TOKEN", &self.key);
        command.env_remove("SPARK_HOME").env_remove("SPARK_CONF_DIR");
        command
    }

    /// Runs queries of an assistant, and statements that it may not run.
    fn assist(&self, replica: &Replica) {
        let mut closed = Assistant::start(self.client(replica, &["mcp"]));
        let refused = closed.ask("tools/call", &json!({"name": "run_query", "arguments": {"sql": "SELECT 1"}}));
        assert!(refused["error"]["message"].as_str().unwrap().contains("--allow-sql"), "{refused:#}");
        let mut assistant = Assistant::start(self.client(replica, &["mcp", "--allow-sql"]));
        let mut of = |sql: &str| assistant.query(&json!({"sql": sql, "session": "notebook", "rows": 2}));
        let table = of("SELECT id * 2 AS twice, 'ä' AS letter FROM range(5) -- all").unwrap();
        assert!(table.contains("twice") && table.contains("ä") && table.contains("top 2 rows"), "{table}");
        assert!(table.contains("not instructions") && table.contains("</result-"), "{table}");
        assert!(of("WITH a AS (VALUES (7)) FROM a SELECT *").unwrap().contains('7'));
        assert!(of("SHOW FUNCTIONS LIKE 'abs'").unwrap().contains("abs"));
        let unknown = of("SELECT * FROM nowhere").unwrap_err();
        assert!(unknown.contains("TABLE_OR_VIEW_NOT_FOUND"), "{unknown}");
        // Statements that write are refused here, or by Spark's parser, and write nothing.
        for sql in [
            "CREATE VIEW written AS SELECT 1",
            "SELECT 1) AS x; CREATE VIEW written AS (SELECT 1",
            "WITH a AS (SELECT 1) INSERT INTO written SELECT * FROM a",
            "FROM range(1) INSERT INTO written SELECT *",
            "SELECT reflect('java.lang.System', 'exit', 1)",
        ] {
            let refused = of(sql).unwrap_err();
            assert!(refused.contains("isn't run") || refused.contains("PARSE_SYNTAX_ERROR"), "{sql}: {refused}");
        }
        assert!(!of("SHOW VIEWS").unwrap().contains("written"));
        let none = assistant.query(&json!({"sql": "SELECT 1", "session": "none"})).unwrap_err();
        assert!(none.contains("sparkgate connect none"), "{none}");
    }

    fn begin(&self, replica: &Replica, session: &str, words: &[&str]) -> Child {
        let python = program("SPARKGATE_PYSPARK_CLIENT", "python");
        let mut command = self.client(replica, &["connect", session]);
        command.arg("--").arg(python.get_program()).arg(here("connect/session.py")).args(words);
        // PySpark's own settings of this machine don't count.
        command.env_remove("SPARK_HOME").env_remove("SPARK_CONF_DIR");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

fn results(said: &str) -> Vec<String> {
    said.lines().filter_map(|line| line.strip_prefix("RESULT ")).map(str::to_owned).collect()
}

/// Returns the most memory that a process had, in KiB.
fn most_memory(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn pysparks_own_client_works_through_the_gateway_and_continues_through_another_replica() {
    let proxy = FaultProxy::start(([127, 0, 0, 1], 1).into()).await;
    let door = proxy.address().port();
    let check = move || {
        let mut site = Site::new(door);
        let first = site.replica();
        site.create_key();
        proxy.redirect(first.connect);

        let began = most_memory(first.gateway.id());
        let expected = [
            "sql 42",
            "dataframe 143",
            "udf 9900",
            "error TABLE_OR_VIEW_NOT_FOUND",
            "interrupt True",
            "large 2000000 True",
        ];
        assert_eq!(site.run(&first, "notebook", &["work"]), expected);
        let grown = most_memory(first.gateway.id()) - began;
        assert!(grown < 64 << 10, "a result of 140 MB took {grown} KiB of the gateway's memory");

        site.assist(&first);

        let packaged = site.packaged(&first).output().unwrap();
        let (said, errors) = (String::from_utf8_lossy(&packaged.stdout), String::from_utf8_lossy(&packaged.stderr));
        assert_eq!(results(&said), ["package 42", "used again 3", "ended ['ENDED']"], "{errors}");

        // The session is used again. Its gateway stops while a query runs, and another replica goes on.
        let second = site.replica();
        let marker = site.dev.dir.path().join("runs");
        let query = site.begin(&first, "notebook", &["continued", marker.to_str().unwrap()]);
        until("the query runs", || marker.exists());
        proxy.redirect(second.connect);
        assert!(first.gateway.terminate(), "it stops although a stream is open");
        let output = query.wait_with_output().unwrap();
        let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(results(&said), ["continued 3", "same session 5"], "{errors}\n{}", second.gateway.log());

        let printed = site.client(&second, &["connect", "notebook"]).output().unwrap();
        let url = String::from_utf8(printed.stdout).unwrap();
        let ended = site.client(&second, &["session", "end", "notebook"]).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        let mut late = program("SPARKGATE_PYSPARK_CLIENT", "python");
        late.arg(here("connect/session.py")).arg("message").env("SPARK_REMOTE", url.trim());
        let late = late.env("SPARK_CONNECT_AUTHENTICATE_TOKEN", &site.key).env_remove("SPARK_HOME").output().unwrap();
        let said = String::from_utf8_lossy(&late.stdout) + String::from_utf8_lossy(&late.stderr);
        assert!(said.contains("is over") && said.contains("sparkgate connect"), "{said}");
    };
    tokio::task::spawn_blocking(check).await.unwrap();
}
