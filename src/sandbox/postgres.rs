//! A private Postgres of the system's own binaries, for `sparkgate dev`.
//!
//! The server outlives a gateway that is killed: the next start finds it by its directory and uses it again.

mod account;
mod binaries;

use std::{
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use tokio::process::Command;
use uuid::Uuid;

use account::Account;

/// A running server.
#[derive(Debug)]
pub struct PrivatePostgres {
    binaries: PathBuf,
    data: PathBuf,
    account: Account,
    /// With the password: not for logs.
    pub url: String,
}

impl PrivatePostgres {
    /// Starts the server that keeps its data below `dir`, making it first if it is new.
    ///
    /// # Errors
    /// No Postgres on this machine, or the server's own words.
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
        let server = |port| Self {
            binaries: binaries.clone(),
            data: data.clone(),
            account: account.clone(),
            url: format!("postgres://sparkgate:{}@127.0.0.1:{port}/postgres", password.trim()),
        };
        if let Some(port) = running(&binaries, &data, &account).await? {
            return Ok(server(port));
        }
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr())?.port();
        let options = format!("-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories=''");
        let log = dir.join("postgres.log");
        let mut start = account.command(&binaries.join("pg_ctl"));
        start.arg("start").arg("-w").arg("-s").arg("-D").arg(&data).arg("-l").arg(&log).arg("-o").arg(options);
        run(start, "starting Postgres").await.with_context(|| format!("its log is {}", log.display()))?;
        Ok(server(port))
    }

    /// Stops the server; its data stay.
    pub async fn stop(&self) -> anyhow::Result<()> {
        let mut stop = self.account.command(&self.binaries.join("pg_ctl"));
        stop.args(["stop", "-w", "-s", "-m", "fast", "-D"]).arg(&self.data);
        run(stop, "stopping Postgres").await
    }
}

async fn initialise(binaries: &Path, data: &Path, password_file: &Path, account: &Account) -> anyhow::Result<()> {
    account.write_secret(password_file, &Uuid::new_v4().simple().to_string())?;
    let mut initdb = account.command(&binaries.join("initdb"));
    initdb.args(["--username=sparkgate", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--pwfile"]);
    initdb.arg(password_file).arg("-D").arg(data);
    run(initdb, "making a database directory").await
}

/// The port of the server that runs on this directory, if one does.
async fn running(binaries: &Path, data: &Path, account: &Account) -> anyhow::Result<Option<u16>> {
    let mut status = account.command(&binaries.join("pg_ctl"));
    let status = status.arg("status").arg("-D").arg(data).output().await.context("asking for the state of Postgres")?;
    if !status.status.success() {
        return Ok(None);
    }
    // Line 4 of postmaster.pid is the port (src/include/miscadmin.h, LOCK_FILE_LINE_PORT).
    let pid_file = std::fs::read_to_string(data.join("postmaster.pid")).context("reading postmaster.pid")?;
    Ok(pid_file.lines().nth(3).and_then(|line| line.trim().parse().ok()))
}

async fn run(mut command: Command, action: &str) -> anyhow::Result<()> {
    let output = command.output().await.with_context(|| action.to_owned())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{action} failed: {}", said.trim());
    }
    Ok(())
}
