//! Settings of `sparkgate dev` and `sparkgate sandbox`.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::bail;
use clap::Args;

use super::{serve::Spark, spark_ui::SparkUi};

#[derive(Debug, Args)]
pub(in crate::app) struct Dev {
    /// Listening address of the gateway.
    #[arg(long, env = "SPARKGATE_LISTEN", default_value = "127.0.0.1:6066")]
    pub(in crate::app) listen: SocketAddr,
    /// Listening address of the sandbox's Kubernetes API.
    #[arg(long, default_value = "127.0.0.1:6067")]
    pub(in crate::app) sandbox_listen: SocketAddr,
    /// Another listening address of the gateway, for clients of Livy (docs/integrate/livy.md).
    #[arg(long, env = "SPARKGATE_LIVY_LISTEN", value_name = "ADDR")]
    pub(in crate::app) livy_listen: Option<SocketAddr>,
    /// Another listening address of the gateway, for clients of Spark Connect (docs/use/connect.md).
    #[arg(long, env = "SPARKGATE_CONNECT_LISTEN", value_name = "ADDR")]
    pub(in crate::app) connect_listen: Option<SocketAddr>,
    /// Another listening address of the gateway, with /metrics, /livez and /readyz.
    #[arg(long, env = "SPARKGATE_MANAGEMENT_LISTEN", value_name = "ADDR")]
    pub(in crate::app) management_listen: Option<SocketAddr>,
    /// An access file with tenants, roles, queues and policies to try (docs/start/try-tenants.md). The sandbox gets their namespaces, and
    /// the key of an administrator is written to the file `token` in the directory, where `sparkgate` itself finds it.
    #[arg(long, env = "SPARKGATE_ACCESS_FILE", value_name = "FILE")]
    pub(in crate::app) access_file: Option<PathBuf>,
    /// Directory for the files of the database and the sandbox [default: /var/lib/sparkgate-dev for root, otherwise
    /// ~/.local/state/sparkgate-dev].
    #[arg(long, env = "SPARKGATE_DEV_DIR")]
    pub(in crate::app) dir: Option<PathBuf>,
    /// The Spark that drivers and executors run [default: `SPARK_HOME`, or an importable pyspark].
    #[arg(long)]
    pub(in crate::app) spark_home: Option<PathBuf>,
    /// Admit only clients with a token, on a machine that you share: it is written to the file `token` in the directory, where
    /// `sparkgate` itself finds it. Without this, every user of this machine can run programs as you.
    #[arg(long, env = "SPARKGATE_DEV_REQUIRE_TOKEN")]
    pub(in crate::app) require_token: bool,
    #[command(flatten)]
    pub(in crate::app) spark: Spark,
    #[command(flatten)]
    pub(in crate::app) spark_ui: SparkUi,
}

impl Dev {
    /// Checks the settings, as far as that is possible without accessing the machine.
    pub(in crate::app) fn check(&self) -> anyhow::Result<()> {
        loopback("--listen", self.listen)?;
        loopback("--sandbox-listen", self.sandbox_listen)?;
        self.livy_listen.map_or(Ok(()), |address| loopback("--livy-listen", address))?;
        self.connect_listen.map_or(Ok(()), |address| loopback("--connect-listen", address))?;
        self.management_listen.map_or(Ok(()), |address| loopback("--management-listen", address))?;
        if self.sandbox_listen.port() == 0 {
            bail!("--sandbox-listen needs a port: clients and later runs must be able to find the sandbox");
        }
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(in crate::app) struct Sandbox {
    /// Listening address of the Kubernetes API.
    #[arg(long, default_value = "127.0.0.1:6067", conflicts_with = "kubeconfig")]
    pub(in crate::app) listen: SocketAddr,
    /// Run only a node, of the cluster of this kubeconfig, and no Kubernetes API.
    #[arg(long)]
    pub(in crate::app) kubeconfig: Option<PathBuf>,
    /// Directory for the files of pods.
    #[arg(long)]
    pub(in crate::app) dir: PathBuf,
    /// The Spark that drivers and executors run [default: `SPARK_HOME`, or an importable pyspark].
    #[arg(long)]
    pub(in crate::app) spark_home: Option<PathBuf>,
    /// A file with the bearer token that clients of the Kubernetes API need [default: none is needed].
    #[arg(long, conflicts_with = "kubeconfig")]
    pub(in crate::app) token_file: Option<PathBuf>,
}

impl Sandbox {
    /// Checks the settings, as far as that is possible without accessing the machine.
    pub(in crate::app) fn check(&self) -> anyhow::Result<()> {
        loopback("--listen", self.listen)
    }
}

/// Checks that an address is a loopback address: there is no authentication, and clients' programs run as processes of
/// this account.
fn loopback(flag: &str, address: SocketAddr) -> anyhow::Result<()> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    bail!(
        "refusing {flag} {address}: every client that can reach it could run programs on this machine as you. \
         Use an address such as 127.0.0.1:{}",
        address.port()
    )
}
