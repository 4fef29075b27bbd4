//! The sandbox as a process beside the gateway.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;
use tokio::process::{Child, Command};

use crate::app::settings::Dev;

/// A sandbox that runs.
#[derive(Debug)]
pub(super) struct SandboxProcess {
    pid: Pid,
    /// `None` if an earlier `dev` started it.
    child: Option<Child>,
    pub(super) log: PathBuf,
    /// For clients of its API, the gateway being one.
    pub(super) kubeconfig: PathBuf,
}

impl SandboxProcess {
    /// Finds the sandbox that an earlier `dev` left behind, or starts one; waits until its API answers.
    pub(super) async fn start(settings: &Dev, dir: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("making the directory {}", dir.display()))?;
        let address = settings.sandbox_listen;
        let (log, pid_file, kubeconfig) = (dir.join("log"), dir.join("pid"), dir.with_file_name("kubeconfig"));
        write_kubeconfig(&kubeconfig, &format!("http://{address}"))?;
        if let Some(pid) = left_behind(&pid_file)
            && answers(address).await
        {
            tracing::info!("found the sandbox of an earlier run");
            return Ok(Self { pid, child: None, log, kubeconfig });
        }
        if answers(address).await {
            bail!("something else listens on {address} already: end it, or give --sandbox-listen another address");
        }
        let mut child = command(settings, dir, &log)?.spawn().context("starting the sandbox")?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed())).context("the sandbox ended at once")?;
        fs::write(&pid_file, pid.as_raw_nonzero().to_string()).context("writing the sandbox's pid")?;
        for _ in 0..100 {
            if answers(address).await {
                return Ok(Self { pid, child: Some(child), log, kubeconfig });
            }
            if let Some(status) = child.try_wait().context("looking after the sandbox")? {
                let said = fs::read_to_string(&log).unwrap_or_default();
                bail!("the sandbox ended with {status}: {}", said.lines().last().unwrap_or("it said nothing"));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        bail!("the sandbox does not answer on {address}: its log is {}", log.display())
    }

    /// Ends the sandbox and with it all its pods.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        let _ = kill_process(self.pid, Signal::TERM);
        for _ in 0..200 {
            let ended = match &mut self.child {
                Some(child) => child.try_wait().context("waiting for the sandbox to end")?.is_some(),
                None => test_kill_process(self.pid).is_err(),
            };
            if ended {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        kill_process(self.pid, Signal::KILL).context("ending the sandbox")
    }
}

fn command(settings: &Dev, dir: &Path, log: &Path) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("finding this program")?;
    let file = fs::OpenOptions::new().create(true).append(true).open(log);
    let file = file.with_context(|| format!("opening {}", log.display()))?;
    let mut command = Command::new(program);
    command.arg("sandbox").arg("--listen").arg(settings.sandbox_listen.to_string()).arg("--dir").arg(dir);
    if let Some(home) = &settings.spark_home {
        command.arg("--spark-home").arg(home);
    }
    // Its own group: neither Ctrl-C at the terminal nor the death of the gateway reaches it.
    command.process_group(0).stdin(Stdio::null()).stderr(file.try_clone()?).stdout(file);
    Ok(command)
}

/// The process of an earlier run, if it still is a sandbox.
fn left_behind(pid_file: &Path) -> Option<Pid> {
    let pid: i32 = fs::read_to_string(pid_file).ok()?.trim().parse().ok()?;
    let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    command.split('\0').any(|word| word == "sandbox").then(|| Pid::from_raw(pid)).flatten()
}

async fn answers(address: std::net::SocketAddr) -> bool {
    tokio::net::TcpStream::connect(address).await.is_ok()
}

fn write_kubeconfig(path: &Path, url: &str) -> anyhow::Result<()> {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "sandbox",
        "clusters": [{"name": "sandbox", "cluster": {"server": url}}],
        "users": [{"name": "sandbox", "user": {}}],
        "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox", "namespace": "default"}}],
    });
    fs::write(path, format!("{config:#}")).with_context(|| format!("writing {}", path.display()))
}

/// The operator's defaults with the one that every submission needs: an image, whose name the sandbox ignores.
pub(super) fn write_defaults(settings: &Dev, dir: &Path) -> anyhow::Result<PathBuf> {
    let mut text = format!("spark.kubernetes.container.image=spark:{}\n", settings.spark_version);
    if let Some(path) = &settings.spark_defaults {
        let own = fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        text.push_str(&own);
    }
    let path = dir.join("spark-defaults.conf");
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}
