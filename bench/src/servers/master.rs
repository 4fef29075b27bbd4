//! Spark's own standalone master with its REST server, and no worker.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::Context;

use super::spark_home;
use crate::{
    gateway::free_port,
    load::{clients::Server, http::Connection},
    process::Process,
    program::Program,
};

const READY: Duration = Duration::from_secs(120);
/// Without a worker the master warns of every waiting driver at each submission. No log is written of these.
const LOG: &str = "rootLogger.level = error\nrootLogger.appenderRef.stdout.ref = console\n\
    appender.console.type = Console\nappender.console.name = console\nappender.console.target = SYSTEM_ERR\n\
    appender.console.layout.type = PatternLayout\nappender.console.layout.pattern = %m%n%ex\n";

/// The master. It ends when this is dropped.
pub(crate) struct Master {
    program: Program,
    /// The address of the REST server.
    address: SocketAddr,
}

impl Master {
    /// Starts a master with its defaults, and waits until it answers. Its files are in `directory`.
    pub(crate) async fn start(directory: &Path) -> anyhow::Result<Self> {
        let [port, ui, rest] = [free_port()?, free_port()?, free_port()?];
        fs::write(directory.join("log4j2.properties"), LOG).context("writing the master's settings")?;
        let mut command = Command::new(spark_home()?.join("bin/spark-class"));
        command.arg("org.apache.spark.deploy.master.Master");
        command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--webui-port", &ui.to_string()]);
        let options = format!("-Dspark.master.rest.enabled=true -Dspark.master.rest.port={rest}");
        command.env("SPARK_MASTER_OPTS", options).env("SPARK_CONF_DIR", directory);
        let mut program = Program::start(&mut command, "Spark's master", directory.join("master.log"))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, rest));
        let answers = async || {
            let Ok(mut connection) = Connection::open(address).await else { return Ok(false) };
            Ok(connection.get("/v1/submissions/readyz").await.is_ok_and(|answer| answer.status == 200))
        };
        program.until(READY, Duration::from_millis(50), answers).await?;
        Ok(Self { program, address })
    }

    pub(crate) fn process(&self) -> Process {
        // The scripts exec the JVM, so the process id stays the same.
        self.program.process()
    }
}

impl From<&Master> for Server {
    fn from(master: &Master) -> Self {
        Self { address: master.address, process: master.process() }
    }
}
