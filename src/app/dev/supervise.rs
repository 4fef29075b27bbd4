//! Notices when a part of `dev` ends before its time.

use std::{path::Path, time::Duration};

use anyhow::bail;
use rustix::process::Pid;

use super::child::SandboxProcess;
use crate::sandbox::postgres::PrivatePostgres;

/// How often a process that isn't a child of this one is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Ends with an error when Postgres or the sandbox has ended.
pub(super) async fn supervise(sandbox: &mut SandboxProcess, postgres: &PrivatePostgres) -> anyhow::Result<()> {
    let sandbox_log = sandbox.log.clone();
    let (name, log) = tokio::select! {
        () = sandbox.ended() => ("the sandbox", sandbox_log),
        () = gone(postgres.pid) => ("Postgres", postgres.log.clone()),
    };
    tracing::error!("{name} ended by itself, so everything ends: its log is {}", log.display());
    bail!("{name} ended by itself")
}

/// Waits for the end of a process.
pub(super) async fn gone(pid: Pid) {
    while runs(pid) {
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether a process runs: one that has ended and waits for its parent has no command line any more.
pub(super) fn runs(pid: Pid) -> bool {
    let command = Path::new("/proc").join(pid.as_raw_nonzero().to_string()).join("cmdline");
    std::fs::read(command).is_ok_and(|command| !command.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_only_waits_to_be_reaped_does_not_run() {
        let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_raw(child.id().cast_signed()).unwrap();
        assert!(runs(pid));
        drop(child.stdin.take());
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while runs(pid) {
            assert!(std::time::Instant::now() < deadline);
            std::thread::yield_now();
        }
        child.wait().unwrap();
    }
}
