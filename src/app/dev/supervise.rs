//! Detects that a part of `dev` has ended by itself.

use anyhow::bail;

use super::{child::SandboxProcess, process::gone};
use sparkgate_sandbox::postgres::PrivatePostgres;

/// Ends with an error when Postgres or the sandbox has ended.
pub(super) async fn supervise(sandbox: &mut SandboxProcess, postgres: &PrivatePostgres) -> anyhow::Result<()> {
    let sandbox_log = sandbox.log.clone();
    let (name, log) = tokio::select! {
        () = sandbox.ended() => ("the sandbox", sandbox_log),
        () = gone(postgres.pid) => ("Postgres", postgres.log.clone()),
    };
    tracing::error!("{name} ended by itself, so everything ends; its log is {}", log.display());
    bail!("{name} ended by itself")
}
