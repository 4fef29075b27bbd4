//! Starts, awaits, signals and cleans up a container's process.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::os::unix::process::ExitStatusExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use super::command::Launch;
use super::logs::LogWriter;
use super::marks;

/// Timeout for the kernel to end killed processes; after that the pod is reported anyway.
const REAP: Duration = Duration::from_secs(5);

/// A running container. Dropping it kills every process of its pod.
pub(super) struct Process {
    child: Child,
    pid: Option<Pid>,
    /// The pod's directory, which marks its processes.
    pod_dir: PathBuf,
    pump: JoinHandle<()>,
    reaped: bool,
}

impl Process {
    /// Starts the program in its own process group and writes its output to the log.
    pub(super) fn start(launch: &Launch, pod_dir: &Path, log: LogWriter) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?;
        let child = Command::new(&launch.program)
            .args(&launch.args)
            .env_clear()
            .envs(launch.env.iter())
            .env(marks::MARK, pod_dir)
            .current_dir(&launch.dir)
            .stdin(Stdio::null())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .spawn()?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let pump = tokio::spawn(log.pump(output));
        Ok(Self { child, pid, pod_dir: pod_dir.to_owned(), pump, reaped: false })
    }

    /// Waits for the end and returns the exit code as container runtimes report it: 128 + n after signal n.
    pub(super) async fn exit_code(&mut self) -> i32 {
        match self.child.wait().await {
            Ok(status) => status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
            Err(error) => {
                tracing::warn!(%error, "cannot wait for a container's process");
                255
            }
        }
    }

    /// Sends SIGTERM to the main process only, as the image's init does; that process then ends its own children.
    pub(super) fn terminate(&self) {
        if let Some(pid) = self.pid
            && let Err(error) = kill_process(pid, Signal::TERM)
        {
            tracing::debug!(%error, "cannot send SIGTERM, the process has ended");
        }
    }

    /// Kills every process of the pod.
    pub(super) fn kill(&self) {
        if let Some(pid) = self.pid {
            // Fails only if the group is already empty.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        marks::kill_below(&self.pod_dir);
    }

    /// Cleans up after the main process has ended: kills its remaining processes, as the end of a container does, and reads the
    /// rest of their output.
    pub(super) async fn clean_up(mut self) {
        let dir = self.pod_dir.clone();
        if let Some(pid) = self.pid {
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let gone = async {
            while tokio::task::spawn_blocking({
                let dir = dir.clone();
                move || marks::kill_below(&dir)
            })
            .await
            .is_ok_and(|found| found > 0)
            {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        if tokio::time::timeout(REAP, gone).await.is_err() {
            tracing::warn!(dir = %dir.display(), "processes of a finished pod are still there");
        }
        if tokio::time::timeout(REAP, &mut self.pump).await.is_err() {
            self.pump.abort();
        }
        self.reaped = true;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill();
        }
    }
}
