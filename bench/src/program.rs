//! Programs that are started and measured.

use std::{
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use tokio::time::{Instant, sleep};

use crate::process::Process;

/// Lines of a log that an error has.
const LINES: usize = 20;

/// A running program. It is killed when this is dropped.
pub(crate) struct Program {
    child: Child,
    /// What errors call it.
    name: &'static str,
    log: PathBuf,
}

impl Program {
    /// Starts a program, whose output goes to the file `log`.
    pub(crate) fn start(command: &mut Command, name: &'static str, log: PathBuf) -> anyhow::Result<Self> {
        let file = File::create(&log).with_context(|| format!("creating the log of {name}"))?;
        let child = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn();
        let child = child.with_context(|| format!("starting {name}: {}", command.get_program().display()))?;
        Ok(Self { child, name, log })
    }

    /// Asks until it is ready, with this pause between, for `limit` at most.
    pub(crate) async fn until(
        &mut self,
        limit: Duration,
        pause: Duration,
        is_ready: impl AsyncFn() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let (begun, name) = (Instant::now(), self.name);
        while begun.elapsed() < limit {
            if let Some(status) = self.child.try_wait()? {
                bail!("{name} exited at startup: {status}: {}", self.log_end());
            }
            if is_ready().await? {
                return Ok(());
            }
            sleep(pause).await;
        }
        bail!("{name} isn't ready after {limit:?}: {}", self.log_end())
    }

    /// Returns the end of its log.
    pub(crate) fn log_end(&self) -> String {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(LINES)..].join("\n")
    }

    pub(crate) fn process(&self) -> Process {
        Process(self.child.id())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
