//! The servers that the gateway uses: Postgres, etcd, a real or a played kube-apiserver, an issuer of tokens, and a
//! collector of traces; and the servers that it is compared with.

mod collector;
mod issuer;
pub(crate) mod kubeconfig;
mod kubernetes;
mod master;
mod operator;
mod played;
mod postgres;
pub(crate) mod rows;

use std::{env, path::PathBuf};

use anyhow::Context;

pub(crate) use collector::Collector;
pub(crate) use issuer::Issuer;
pub(crate) use kubernetes::Kubernetes;
pub(crate) use master::Master;
pub(crate) use operator::Operator;
pub(crate) use played::Played;
pub(crate) use postgres::Database;

/// Returns the directory of Spark.
pub(crate) fn spark_home() -> anyhow::Result<PathBuf> {
    let home = env::var_os("SPARK_HOME").context("SPARK_HOME names no Spark: `make bench` fetches one")?;
    Ok(PathBuf::from(home))
}
