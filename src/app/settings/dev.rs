//! Settings of `sparkgate dev` and `sparkgate sandbox`.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::bail;
use clap::Args;

use crate::spark::SparkVersion;

#[derive(Debug, Args)]
pub(in crate::app) struct Dev {
    /// Where the gateway listens.
    #[arg(long, env = "SPARKGATE_LISTEN", default_value = "127.0.0.1:6066")]
    pub(in crate::app) listen: SocketAddr,
    /// Where the sandbox's Kubernetes API listens.
    #[arg(long, default_value = "127.0.0.1:6067")]
    pub(in crate::app) sandbox_listen: SocketAddr,
    /// Where the database and the sandbox keep their files [default: /var/lib/sparkgate-dev for root, otherwise
    /// ~/.local/state/sparkgate-dev].
    #[arg(long, env = "SPARKGATE_DEV_DIR")]
    pub(in crate::app) dir: Option<PathBuf>,
    /// The Spark release to speak as.
    #[arg(long, env = "SPARKGATE_SPARK_VERSION", default_value = "4.3.0")]
    pub(in crate::app) spark_version: SparkVersion,
    /// A spark-defaults.conf with properties for requests that don't set them.
    #[arg(long, env = "SPARKGATE_SPARK_DEFAULTS")]
    pub(in crate::app) spark_defaults: Option<PathBuf>,
    /// A directory with named defaults, pod templates and configuration for requests to use (docs/submitter.md).
    #[arg(long, env = "SPARKGATE_SUBMITTER_DIR")]
    pub(in crate::app) submitter_dir: Option<PathBuf>,
    /// The Spark that drivers and executors run [default: `SPARK_HOME`, or an importable pyspark].
    #[arg(long)]
    pub(in crate::app) spark_home: Option<PathBuf>,
}

impl Dev {
    /// What can be told without looking at the machine.
    pub(in crate::app) fn check(&self) -> anyhow::Result<()> {
        loopback("--listen", self.listen)?;
        loopback("--sandbox-listen", self.sandbox_listen)?;
        if self.sandbox_listen.port() == 0 {
            bail!("--sandbox-listen needs a port: clients and a later run have to find the sandbox");
        }
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(in crate::app) struct Sandbox {
    /// Where its Kubernetes API listens.
    #[arg(long, default_value = "127.0.0.1:6067", conflicts_with = "kubeconfig")]
    pub(in crate::app) listen: SocketAddr,
    /// Be a node of this cluster instead of having an API of its own.
    #[arg(long)]
    pub(in crate::app) kubeconfig: Option<PathBuf>,
    /// Where pods keep their files.
    #[arg(long)]
    pub(in crate::app) dir: PathBuf,
    /// The Spark that drivers and executors run [default: `SPARK_HOME`, or an importable pyspark].
    #[arg(long)]
    pub(in crate::app) spark_home: Option<PathBuf>,
}

impl Sandbox {
    /// What can be told without looking at the machine.
    pub(in crate::app) fn check(&self) -> anyhow::Result<()> {
        loopback("--listen", self.listen)
    }
}

/// Nobody is asked who they are, and what they send runs as processes of this account.
fn loopback(flag: &str, address: SocketAddr) -> anyhow::Result<()> {
    if address.ip().is_loopback() {
        return Ok(());
    }
    bail!(
        "refusing {flag} {address}: anybody who reaches it could run programs on this machine as you. \
         Give an address such as 127.0.0.1:{}",
        address.port()
    )
}
