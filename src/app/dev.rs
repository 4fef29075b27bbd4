//! `sparkgate dev`: everything on one machine.
//!
//! Postgres and the sandbox are separate processes. If the gateway is killed, they keep running, and the next `dev` uses
//! them again: jobs go on as they would on a cluster. Ctrl-C stops all three. If one of them ends, the others are stopped.

mod child;
mod lock;
mod private;
mod process;
mod supervise;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use anyhow::Context;
use rustix::process::geteuid;
use tokio::net::TcpListener;

use super::{
    adopt_cluster::adopt_cluster,
    sandbox::create_namespaces,
    serve::{self, Reload, Signals},
    settings::{AdoptCluster, Dev, Serve, Spark, person},
};
use private::{PrivateToken, write_private};

use sparkgate_sandbox::{node, postgres::PrivatePostgres};
use sparkgate_service::Submitter;

/// Runs the database, the sandbox and the gateway until SIGINT or SIGTERM.
///
/// # Errors
/// Something is missing on this machine (the text says what to install), or a part ended by itself.
pub(super) async fn dev(settings: Dev) -> anyhow::Result<()> {
    // Checks come first, before anything is started. Signals are caught from the last check on and handled later.
    settings.check()?;
    let defaults = defaults(&settings)?;
    settings.spark.files.submitter_dir.as_deref().map(Submitter::read).transpose()?;
    let has_spark = node::Spark::find(settings.spark_home.as_deref()).await?.is_some();
    let dir = settings.dir.clone().map_or_else(default_dir, Ok)?;
    let dir = std::path::absolute(&dir).with_context(|| format!("resolving {}", dir.display()))?;
    fs::create_dir_all(&dir).with_context(|| format!("making the directory {}", dir.display()))?;
    let _lock = lock::Lock::take(&dir)?;
    let listener = serve::listen(settings.listen).await?;
    let sandbox = child::Sandbox::find(&settings, &dir.join("sandbox")).await?;
    let path = dir.join("spark-defaults.conf");
    write_private(&path, &defaults).with_context(|| format!("writing {}", path.display()))?;
    let signals = Signals::listen()?;

    if !has_spark {
        tracing::warn!("no Spark found: drivers are only simulated; set SPARK_HOME or pip install pyspark");
    }
    let postgres = PrivatePostgres::start(&dir.join("postgres")).await?;
    let database = dir.join("database-url");
    write_private(&database, &postgres.url).with_context(|| format!("writing {}", database.display()))?;
    tracing::info!("database: a private Postgres; `psql $(cat {})` looks into it", database.display());
    let served = beside(&settings, &dir, path, sandbox, &postgres, listener, signals).await;
    let stopped = postgres.stop().await;
    served.and(stopped)
}

/// Runs the sandbox and the gateway until a signal, or until one of them or Postgres ends.
async fn beside(
    settings: &Dev,
    dir: &Path,
    defaults: PathBuf,
    sandbox: child::Sandbox,
    postgres: &PrivatePostgres,
    listener: TcpListener,
    signals: Signals,
) -> anyhow::Result<()> {
    let token = if settings.require_token { Some(PrivateToken::for_sandbox(dir)?) } else { None };
    let mut sandbox = sandbox.start(settings, token.as_ref()).await?;
    tracing::info!("sandbox: http://{} (log: {})", settings.sandbox_listen, sandbox.log.display());
    if let Some(access_file) = &settings.access_file {
        create_namespaces(access_file, &sandbox.kubeconfig).await?;
    }
    let mut gateway = gateway(settings, dir, &sandbox.kubeconfig, &postgres.url, listener.local_addr()?)?;
    gateway.spark.files.spark_defaults = Some(defaults);
    // The sandbox keeps its objects in memory: each start is another cluster, without the drivers of the one before.
    adopt_cluster(AdoptCluster {
        database: gateway.database.clone(),
        place: gateway.kubernetes.place.clone(),
        with_live_submissions: true,
        same_store: true,
    })
    .await?;
    if settings.require_token || settings.access_file.is_some() {
        private::write_key(dir, &gateway.database, listener.local_addr()?).await?;
        let access_file = settings.access_file.clone().map_or_else(|| private::access_file(dir), Ok)?;
        gateway.access.access_file = Some(access_file);
    }
    let ended = async {
        tokio::select! {
            () = signals.received() => Ok(()),
            ended = supervise::supervise(&mut sandbox, postgres) => ended,
        }
    };
    let served = serve::run(&gateway, listener, Reload::new(&gateway, None), ended).await;
    let stopped = sandbox.stop().await;
    served.and(stopped)
}

/// Returns the settings of the gateway. What isn't named here has the default of `serve`.
fn gateway(
    settings: &Dev,
    dir: &Path,
    kubeconfig: &Path,
    database: &str,
    address: SocketAddr,
) -> Result<Serve, clap::Error> {
    let flags = [
        ("listen", settings.listen.to_string().into()),
        ("database-url", database.into()),
        ("kubeconfig", kubeconfig.into()),
        ("logs-url", dir.join("logs").into()),
        ("files-url", dir.join("files").into()),
        ("files-base-url", format!("http://{address}").into()),
        // Webhooks may lead to this machine itself.
        ("webhook-networks", "127.0.0.0/8,::1/128".into()),
        ("webhook-http", "true".into()),
    ];
    let mut gateway = Serve::from_flags(flags)?;
    gateway.http.livy_listen = settings.livy_listen;
    gateway.http.connect_listen = settings.connect_listen;
    gateway.http.management_listen = settings.management_listen;
    gateway.spark_ui = settings.spark_ui.clone();
    let user = settings.spark.spark_user.clone().unwrap_or_else(person);
    gateway.spark = Spark { spark_user: Some(user), ..settings.spark.clone() };
    Ok(gateway)
}

/// Returns the operator's Spark defaults, preceded by the one that every submission needs: an image, whose name the
/// sandbox ignores.
fn defaults(settings: &Dev) -> anyhow::Result<String> {
    let mut text = format!("spark.kubernetes.container.image=spark:{}\n", settings.spark.spark_version);
    if let Some(path) = &settings.spark.files.spark_defaults {
        let own = fs::read_to_string(path);
        text.push_str(&own.with_context(|| format!("reading the Spark defaults from {}", path.display()))?);
    }
    Ok(text)
}

/// Returns the default directory. Root's is not below its home, which the account that Postgres runs as may not be able to
/// read.
fn default_dir() -> anyhow::Result<PathBuf> {
    if geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/sparkgate-dev"));
    }
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state"));
    let base = state.or_else(home).context("neither XDG_STATE_HOME nor HOME is set: give --dir")?;
    Ok(base.join("sparkgate-dev"))
}
