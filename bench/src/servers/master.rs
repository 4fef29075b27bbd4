//! Spark's own standalone master with its REST server, and no worker.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use tokio::time::{Instant, sleep};

use super::spark_home;
use crate::{
    gateway::free_port,
    load::{clients::Server, http::Connection},
    process::Process,
};

const READY: Duration = Duration::from_secs(120);
/// Without a worker the master warns of every waiting driver at each submission. No log is written of these.
const LOG: &str = "rootLogger.level = error\nrootLogger.appenderRef.stdout.ref = console\n\
    appender.console.type = Console\nappender.console.name = console\nappender.console.target = SYSTEM_ERR\n\
    appender.console.layout.type = PatternLayout\nappender.console.layout.pattern = %m%n%ex\n";

/// The master. It ends when this is dropped.
pub(crate) struct Master {
    child: Child,
    /// The address of the REST server.
    address: SocketAddr,
}

impl Master {
    /// Starts a master with its defaults, and waits until it answers. Its files are in `directory`.
    pub(crate) async fn start(directory: &Path) -> anyhow::Result<Self> {
        let [port, ui, rest] = [free_port()?, free_port()?, free_port()?];
        fs::write(directory.join("log4j2.properties"), LOG).context("writing the master's settings")?;
        let log = File::create(directory.join("master.log")).context("creating the master's log")?;
        let mut command = Command::new(spark_home()?.join("bin/spark-class"));
        command.arg("org.apache.spark.deploy.master.Master");
        command.args(["--host", "127.0.0.1", "--port", &port.to_string(), "--webui-port", &ui.to_string()]);
        let options = format!("-Dspark.master.rest.enabled=true -Dspark.master.rest.port={rest}");
        command.env("SPARK_MASTER_OPTS", options).env("SPARK_CONF_DIR", directory);
        let child = command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn();
        let child = child.context("starting Spark's master")?;
        let mut master = Self { child, address: SocketAddr::from((Ipv4Addr::LOCALHOST, rest)) };
        master.until_it_answers(directory).await?;
        Ok(master)
    }

    async fn until_it_answers(&mut self, directory: &Path) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < READY {
            if let Some(status) = self.child.try_wait()? {
                let log = fs::read_to_string(directory.join("master.log")).unwrap_or_default();
                bail!("Spark's master exited at startup: {status}: {log}");
            }
            if let Ok(mut connection) = Connection::open(self.address).await
                && connection.get("/v1/submissions/readyz").await.is_ok_and(|answer| answer.status == 200)
            {
                return Ok(());
            }
            sleep(Duration::from_millis(50)).await;
        }
        bail!("Spark's master doesn't answer after {READY:?}")
    }

    pub(crate) fn process(&self) -> Process {
        // The scripts exec the JVM, so the process id stays the same.
        Process(self.child.id())
    }
}

impl From<&Master> for Server {
    fn from(master: &Master) -> Self {
        Self { address: master.address, process: master.process() }
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
