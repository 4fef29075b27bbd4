//! The sandbox as a child process of `dev`.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use secrecy::ExposeSecret;
use serde_json::json;
use tokio::process::{Child, Command};

use super::{
    private::{PrivateToken, write_private},
    process::{gone, runs},
};
use crate::app::{serve::listen, settings::Dev};

/// The sandbox of a directory, before it is started.
#[derive(Debug)]
pub(super) struct Sandbox {
    dir: PathBuf,
    /// The sandbox that an earlier `dev` started, if it still answers.
    running: Option<Pid>,
}

impl Sandbox {
    /// Looks for the sandbox of an earlier `dev`. If there is none, checks that the sandbox's address is free.
    pub(super) async fn find(settings: &Dev, dir: &Path) -> anyhow::Result<Self> {
        let address = settings.sandbox_listen;
        let running = left_behind(dir);
        if let Some(pid) = running
            && !answers(address).await
        {
            let pid = pid.as_raw_nonzero();
            bail!(
                "the sandbox of an earlier run (pid {pid}) does not answer on {address}: stop it, or give its address"
            );
        }
        if running.is_none() {
            listen(address).await.context("the sandbox's address can't be used (--sandbox-listen)")?;
        }
        Ok(Self { dir: dir.to_owned(), running })
    }

    /// Starts the sandbox unless it runs, and waits until its API answers. With a token file, its clients need the token.
    pub(super) async fn start(self, settings: &Dev, token: Option<&PrivateToken>) -> anyhow::Result<SandboxProcess> {
        let Self { dir, running } = self;
        fs::create_dir_all(&dir).with_context(|| format!("making the directory {}", dir.display()))?;
        let address = settings.sandbox_listen;
        let (log, kubeconfig) = (dir.join("log"), dir.with_file_name("kubeconfig"));
        let marker = dir.join("requires-token");
        if let Some(pid) = running {
            let required = marker.exists();
            if required != token.is_some() {
                let (pid, with) = (pid.as_raw_nonzero(), if required { "with" } else { "without" });
                bail!("the sandbox of an earlier run (pid {pid}) was started {with} --require-token: stop it first");
            }
            write_kubeconfig(&kubeconfig, &format!("http://{address}"), token)?;
            tracing::info!("reusing the sandbox of an earlier run");
            return Ok(SandboxProcess { pid, child: None, log, kubeconfig });
        }
        write_kubeconfig(&kubeconfig, &format!("http://{address}"), token)?;
        // For the next `dev`, if this sandbox outlives the present one.
        match token {
            Some(_) => fs::write(&marker, "").with_context(|| format!("writing {}", marker.display()))?,
            None => drop(fs::remove_file(&marker)),
        }
        let child = command(settings, &dir, &log, token)?.spawn().context("starting the sandbox")?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).context("the sandbox ended at once")?;
        let mut sandbox = SandboxProcess { pid, child: Some(child), log, kubeconfig };
        match sandbox.ready(address, &dir.join("pid")).await {
            Ok(()) => Ok(sandbox),
            Err(error) => {
                sandbox.stop().await?;
                Err(error)
            }
        }
    }
}

/// A running sandbox.
#[derive(Debug)]
pub(super) struct SandboxProcess {
    pid: Pid,
    /// `None` if an earlier `dev` started it.
    child: Option<Child>,
    pub(super) log: PathBuf,
    /// The kubeconfig for clients of the sandbox's API, such as the gateway.
    pub(super) kubeconfig: PathBuf,
}

impl SandboxProcess {
    async fn ready(&mut self, address: SocketAddr, pid_file: &Path) -> anyhow::Result<()> {
        fs::write(pid_file, self.pid.as_raw_nonzero().to_string()).context("writing the sandbox's pid")?;
        for _ in 0..100 {
            if answers(address).await {
                return Ok(());
            }
            if !self.runs()? {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                bail!("the sandbox ended: {}", log.lines().last().unwrap_or("its log is empty"));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("the sandbox does not answer on {address}: its log is {}", self.log.display())
    }

    /// Waits for the sandbox's end.
    pub(super) async fn ended(&mut self) {
        match &mut self.child {
            // An error means that there is nothing to wait for.
            Some(child) => drop(child.wait().await),
            None => gone(self.pid).await,
        }
    }

    /// Stops the sandbox and with it all its pods.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        // Once the sandbox has ended, another process may have its pid.
        if !self.runs()? {
            return Ok(());
        }
        let _ = kill_process(self.pid, Signal::TERM);
        for _ in 0..200 {
            if !self.runs()? {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        kill_process(self.pid, Signal::KILL).context("stopping the sandbox")
    }

    fn runs(&mut self) -> anyhow::Result<bool> {
        match &mut self.child {
            Some(child) => Ok(child.try_wait().context("checking whether the sandbox runs")?.is_none()),
            None => Ok(runs(self.pid)),
        }
    }
}

fn command(settings: &Dev, dir: &Path, log: &Path, token: Option<&PrivateToken>) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("finding this program")?;
    let file = fs::OpenOptions::new().create(true).append(true).open(log);
    let file = file.with_context(|| format!("opening {}", log.display()))?;
    let mut command = Command::new(program);
    command.arg("sandbox").arg("--listen").arg(settings.sandbox_listen.to_string()).arg("--dir").arg(dir);
    if let Some(home) = &settings.spark_home {
        command.arg("--spark-home").arg(home);
    }
    if let Some(token) = token {
        command.arg("--token-file").arg(&token.path);
    }
    // In its own process group: neither Ctrl-C at the terminal nor a kill of the gateway reaches the sandbox.
    command.process_group(0).stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
    Ok(command)
}

/// Returns the process of an earlier run, if it is still the sandbox of this directory.
fn left_behind(dir: &Path) -> Option<Pid> {
    let pid: i32 = fs::read_to_string(dir.join("pid")).ok()?.trim().parse().ok()?;
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    let has = |word: &str| command.split('\0').any(|one| one == word);
    (has("sandbox") && has(dir.to_str()?)).then(|| Pid::from_raw(pid)).flatten()
}

async fn answers(address: SocketAddr) -> bool {
    tokio::net::TcpStream::connect(address).await.is_ok()
}

fn write_kubeconfig(path: &Path, url: &str, token: Option<&PrivateToken>) -> anyhow::Result<()> {
    let user = token.map_or_else(|| json!({}), |token| json!({"token": token.text.expose_secret()}));
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "sandbox",
        "clusters": [{"name": "sandbox", "cluster": {"server": url}}],
        "users": [{"name": "sandbox", "user": user}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox", "namespace": "default"}}],
    });
    write_private(path, &format!("{config:#}")).with_context(|| format!("writing {}", path.display()))
}
