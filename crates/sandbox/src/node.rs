//! A small kubelet whose pods are processes of this machine.
//!
//! It only talks to an API server, acts as the scheduler as well, and runs pods that follow the Spark image's contract:
//! `driver …` and `executor`. Linux only: it gives pods addresses in 127.0.0.0/8 and finds their processes in `/proc`.
//!
//! `pods` watches and starts one `worker` for each pod; a worker `prepare`s a launch from volumes, environment and
//! `command`, runs the `process` and `report`s its `status`.

mod addresses;
mod command;
mod contract;
mod driver_host;
mod env;
mod events;
mod fault;
mod logs;
mod marks;
mod objects;
mod paths;
mod played;
mod pods;
mod prepare;
mod process;
mod properties;
mod register;
mod report;
mod spark_home;
mod status;
mod volumes;
mod worker;

use std::future::IntoFuture;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use addresses::Addresses;
use command::ApiAccess;
use logs::Logs;
pub use spark_home::Spark;

/// The configuration of a node.
#[derive(Clone)]
pub struct NodeConfig {
    /// The client for the node's own calls.
    pub client: Client,
    /// The API server's address for drivers, such as `http://127.0.0.1:8001`.
    pub api_url: String,
    /// A bearer token for drivers. `None` if the API server requires none.
    pub token: Option<String>,
    /// The certificate authority that drivers trust, for an `https` address.
    pub ca_file: Option<PathBuf>,
    /// Name of the Node object.
    pub name: String,
    /// The Spark that is used for every image, see [`Spark::find`]. `None`: jobs are simulated.
    pub spark: Option<Spark>,
    /// The state directory: pods' directories with their logs, and volumes of claims. It is created if missing, and readable
    /// only by the user. Two nodes must not share one.
    pub dir: PathBuf,
}

/// The state that all workers of a node share.
struct Node {
    client: Client,
    name: String,
    dir: PathBuf,
    kubeconfig: PathBuf,
    api: ApiAccess,
    spark: Option<Spark>,
    addresses: Addresses,
    logs: Logs,
    shutdown: CancellationToken,
}

impl Node {
    fn pods_dir(&self) -> PathBuf {
        self.dir.join("pods")
    }
}

/// Runs the node until `shutdown`, then ends its pods' processes, reports the pods as failed and returns.
///
/// # Errors
/// The state directory can't be used, the log server can't listen, or the Node object can't be created.
pub async fn run(config: NodeConfig, shutdown: CancellationToken) -> anyhow::Result<()> {
    let NodeConfig { client, api_url, token, ca_file, name, spark, dir } = config;
    match &spark {
        Some(spark) => tracing::info!(home = %spark.home.display(), "the sandbox runs jobs with this Spark"),
        None => tracing::warn!("no Spark found: the sandbox only simulates jobs. Install pyspark or set SPARK_HOME"),
    }
    let dir = std::path::absolute(&dir).with_context(|| format!("cannot resolve {}", dir.display()))?;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir.join("pods"))
        .with_context(|| format!("cannot create the sandbox's directory {}", dir.display()))?;
    let killed = marks::kill_below(&dir);
    if killed > 0 {
        tracing::warn!(killed, "ended processes that an earlier node left behind");
    }

    let kubeconfig = dir.join("kubeconfig");
    write_private(&kubeconfig, "apiVersion: v1\nkind: Config\n")?;
    let token_file = token.map(|token| {
        let file = dir.join("token");
        // Spark uses the whole file: a newline would become part of the token.
        write_private(&file, token.trim()).map(|()| file)
    });
    let api = ApiAccess { url: api_url, token_file: token_file.transpose()?, ca_file };

    let listener = TcpListener::bind((status::HOST, 0)).await.context("cannot listen for log requests")?;
    let port = listener.local_addr().context("cannot read the log server's port")?.port();
    let logs = Logs::default();
    let server = axum::serve(listener, logs::router(logs.clone()));

    register::register(&client, &name, port).await?;
    let addresses = Addresses::new();
    let node = Arc::new(Node { client, name, dir, kubeconfig, api, spark, addresses, logs, shutdown });
    tokio::select! {
        () = pods::run(Arc::clone(&node)) => Ok(()),
        () = register::keep_ready(&node, port) => Ok(()),
        result = server.into_future() => result.context("the node's log server ended"),
    }
}

/// Removes a pod's directory, if it still exists.
fn remove_dir(dir: &Path) {
    match std::fs::remove_dir_all(dir) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => tracing::warn!(%error, dir = %dir.display(), "cannot remove a finished pod's directory"),
    }
}

fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let write = || {
        std::fs::write(path, text)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}
