//! The measured program: one `sparkgate serve`.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    process::Command,
    time::Duration,
};

use anyhow::{Context, bail};
use tokio::time::{Instant, sleep};

use crate::{bench::Bench, load::http::Connection, process::Process, program::Program};

/// The longest time until the gateway is ready, whatever it has to read at its start.
const READY: Duration = Duration::from_secs(300);

/// The process. It ends when this is dropped.
pub(crate) struct Gateway {
    program: Program,
    pub(crate) address: SocketAddr,
    /// The time from its start until it answered.
    pub(crate) started_in: Duration,
}

impl Gateway {
    /// Starts the gateway and waits until it answers. Its log goes to `sparkgate.log` in `directory`.
    pub(crate) async fn start(
        bench: &Bench,
        directory: &Path,
        database_url: &str,
        kubeconfig: &Path,
        options: &[&str],
    ) -> anyhow::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
        let mut command = Command::new(bench.program()?);
        command.arg("serve").arg("--kubeconfig").arg(kubeconfig).arg("--listen").arg(address.to_string()).args(options);
        command.env("SPARKGATE_DATABASE_URL", database_url).env_remove("KUBECONFIG");
        let begun = Instant::now();
        let mut program = Program::start(&mut command, "the gateway", directory.join("sparkgate.log"))?;
        let answers = async || {
            let Ok(mut connection) = Connection::open(address).await else { return Ok(false) };
            // 401: it works, and has an access file.
            let answer = connection.get("/v1/submissions?limit=1").await;
            Ok(answer.is_ok_and(|answer| matches!(answer.status, 200 | 401)))
        };
        program.until(READY, Duration::from_millis(2), answers).await?;
        Ok(Self { program, address, started_in: begun.elapsed() })
    }

    /// Waits until the gateway reports that it is ready, which means that it has listed the pods.
    pub(crate) async fn until_ready(&self) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let mut connection = Connection::open(self.address).await?;
        while connection.get("/readyz").await?.status != 200 {
            if begun.elapsed() > READY {
                bail!("the gateway isn't ready after {READY:?}");
            }
            sleep(Duration::from_millis(5)).await;
        }
        Ok(begun.elapsed())
    }

    pub(crate) fn process(&self) -> Process {
        self.program.process()
    }
}

/// Returns a port that no process listens on.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("looking for a free port")?;
    Ok(listener.local_addr()?.port())
}
