//! `sparkgate dev`: everything on one machine.
//!
//! Postgres and the sandbox are processes of their own. A gateway that is killed leaves them alone, and the next `dev`
//! finds them again: its jobs go on as they would on a cluster. Ctrl-C ends all three.

mod child;

use std::path::PathBuf;

use anyhow::Context;
use rustix::process::geteuid;

use super::{
    serve,
    settings::{Database, Dev, Http, Kubernetes, Serve, Spark},
};
use crate::sandbox::postgres::PrivatePostgres;

/// Runs the database, the sandbox and the gateway until SIGINT or SIGTERM.
///
/// # Errors
/// Whatever is missing on this machine, with what to install.
pub(super) async fn dev(settings: Dev) -> anyhow::Result<()> {
    let dir = settings.dir.clone().map_or_else(default_dir, Ok)?;
    std::fs::create_dir_all(&dir).with_context(|| format!("making the directory {}", dir.display()))?;
    let postgres = PrivatePostgres::start(&dir.join("postgres")).await?;
    tracing::info!("database: a private Postgres in {}", dir.display());
    let served = beside(&settings, &dir, &postgres.url).await;
    postgres.stop().await?;
    served
}

/// The gateway beside its sandbox.
async fn beside(settings: &Dev, dir: &std::path::Path, database_url: &str) -> anyhow::Result<()> {
    let sandbox = child::SandboxProcess::start(settings, &dir.join("sandbox")).await?;
    tracing::info!("sandbox: http://{} (log: {})", settings.sandbox_listen, sandbox.log.display());
    let defaults = child::write_defaults(settings, dir)?;
    let served = serve::serve(Serve {
        http: Http { listen: settings.listen, trusted_network: false, max_request_body: 100 << 20 },
        database: Database::new(database_url.to_owned()),
        kubernetes: Kubernetes { kubeconfig: Some(sandbox.kubeconfig.clone()), context: None, namespaces: Vec::new() },
        spark: Spark { spark_version: settings.spark_version, spark_defaults: Some(defaults), spark_user: None },
    })
    .await;
    sandbox.stop().await?;
    served
}

/// Root's home may be closed to the account that Postgres runs as.
fn default_dir() -> anyhow::Result<PathBuf> {
    if geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/sparkgate-dev"));
    }
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let base = state.or_else(home).context("neither XDG_STATE_HOME nor HOME is set: give --dir")?;
    Ok(base.join("sparkgate-dev"))
}
