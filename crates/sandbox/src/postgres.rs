//! A private Postgres server, run with the system's own binaries, for `sparkgate dev`.
//!
//! The server outlives a gateway that is killed: the next start finds it by its directory and reuses it.

mod account;
mod binaries;

use std::{
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use rustix::process::Pid;
use tokio::process::Command;
use uuid::Uuid;

use account::Account;

/// A running server.
#[derive(Debug)]
pub struct PrivatePostgres {
    binaries: PathBuf,
    data: PathBuf,
    account: Account,
    /// The connection URL. It contains the password, so it must not be logged.
    pub url: String,
    /// The server's first process, the postmaster.
    pub pid: Pid,
    pub log: PathBuf,
}

impl PrivatePostgres {
    /// Starts the server whose data is below `dir`, and initializes it first if it is new.
    ///
    /// # Errors
    /// There is no Postgres on this machine, or it fails; the error then has the server's own message.
    pub async fn start(dir: &Path) -> anyhow::Result<Self> {
        let binaries = binaries::find()?;
        // Postgres refuses to run as root.
        let account = Account::for_postgres()?;
        let data = dir.join("data");
        account.make_dir(dir)?;
        let password_file = dir.join("password");
        if !data.join("PG_VERSION").exists() {
            initialise(&binaries, &data, &password_file, &account).await?;
        }
        let password = std::fs::read_to_string(&password_file)
            .with_context(|| format!("reading the database password from {}", password_file.display()))?;
        let log = dir.join("postgres.log");
        let (pid, port) = match running(&binaries, &data, &account).await? {
            Some(found) => found,
            None => start(&binaries, &data, &log, &account).await?,
        };
        let url = format!("postgres://sparkgate:{}@127.0.0.1:{port}/postgres", password.trim());
        Ok(Self { binaries, data, account, url, pid, log })
    }

    /// Stops the server; its data is kept.
    pub async fn stop(&self) -> anyhow::Result<()> {
        stop(&self.binaries, &self.data, &self.account).await
    }
}

async fn initialise(binaries: &Path, data: &Path, password_file: &Path, account: &Account) -> anyhow::Result<()> {
    account.write_secret(password_file, &Uuid::new_v4().simple().to_string())?;
    let mut initdb = account.command(&binaries.join("initdb"));
    initdb.args(["--username=sparkgate", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--pwfile"]);
    initdb.arg(password_file).arg("-D").arg(data);
    run(initdb, "creating a database directory").await
}

async fn start(binaries: &Path, data: &Path, log: &Path, account: &Account) -> anyhow::Result<(Pid, u16)> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr())?.port();
    let options = format!("-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories=''");
    let mut start = account.command(&binaries.join("pg_ctl"));
    start.arg("start").arg("-w").arg("-s").arg("-D").arg(data).arg("-l").arg(log).arg("-o").arg(options);
    if let Err(error) = run(start, "starting Postgres").await {
        // The server may only have taken too long. If it didn't start, it can't be stopped, and that error is of no interest.
        let _ = stop(binaries, data, account).await;
        return Err(error).with_context(|| format!("its log is {}", log.display()));
    }
    running(binaries, data, account)
        .await?
        .with_context(|| format!("Postgres ended at once: its log is {}", log.display()))
}

async fn stop(binaries: &Path, data: &Path, account: &Account) -> anyhow::Result<()> {
    let mut stop = account.command(&binaries.join("pg_ctl"));
    stop.args(["stop", "-w", "-s", "-m", "fast", "-D"]).arg(data);
    run(stop, "stopping Postgres").await
}

/// Returns the process and the port of the server that runs on this directory, if there is one.
async fn running(binaries: &Path, data: &Path, account: &Account) -> anyhow::Result<Option<(Pid, u16)>> {
    let mut status = account.command(&binaries.join("pg_ctl"));
    let status = status.arg("status").arg("-D").arg(data).output().await.context("reading the state of Postgres")?;
    if !status.status.success() {
        return Ok(None);
    }
    // Line 1 of postmaster.pid is the process, line 4 the port (src/include/utils/pidfile.h).
    let pid_file = std::fs::read_to_string(data.join("postmaster.pid")).context("reading postmaster.pid")?;
    let line = |index| pid_file.lines().nth(index).map_or("", str::trim);
    let pid = line(0).parse().ok().and_then(Pid::from_raw);
    Ok(pid.zip(line(3).parse().ok()))
}

async fn run(mut command: Command, action: &str) -> anyhow::Result<()> {
    let output = command.output().await.with_context(|| action.to_owned())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{action} failed: {}", said.trim());
    }
    Ok(())
}
