//! The command line that is started for a container: the image's entrypoint, translated for this machine.

mod driver;
mod executor;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use super::env::Env;
use super::spark_home::Spark;

pub(super) use driver::{driver, properties_file};
pub(super) use executor::executor;

/// A program to start.
#[derive(Debug, Clone)]
pub(super) struct Launch {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    /// The whole environment; nothing is inherited.
    pub(super) env: Env,
    pub(super) dir: PathBuf,
}

/// The environment in which a program is started.
#[derive(Debug, Clone, Copy)]
pub(super) struct Site<'a> {
    pub(super) spark: &'a Spark,
    /// The pod's address.
    pub(super) address: Ipv4Addr,
    /// The working directory.
    pub(super) dir: &'a Path,
}

/// The API server's address and credentials for a driver.
#[derive(Debug, Clone)]
pub(super) struct ApiAccess {
    pub(super) url: String,
    pub(super) token_file: Option<PathBuf>,
    pub(super) ca_file: Option<PathBuf>,
}

/// Environment variables of the node that a pod inherits. All others, including the gateway's secrets, are not passed on.
const INHERITED: [&str; 8] = ["PATH", "HOME", "USER", "LOGNAME", "JAVA_HOME", "LANG", "LC_ALL", "TZ"];

/// Completes a container's environment with the variables of this machine; the container's own variables take precedence.
pub(super) fn complete(mut env: Env, site: &Site<'_>, temp: &Path, kubeconfig: &Path) -> Env {
    let Site { spark, address, .. } = site;
    for name in INHERITED {
        if let Ok(value) = std::env::var(name) {
            env.set_default(name, value);
        }
    }
    env.set_default("TMPDIR", temp.to_string_lossy());
    env.set_default("SPARK_HOME", spark.home.to_string_lossy());
    env.set_default("PYSPARK_PYTHON", spark.python.to_string_lossy());
    // For the web interface and everything else that would listen on all addresses.
    env.set("SPARK_LOCAL_IP", address.to_string());
    // Spark's Kubernetes client reads ~/.kube/config, which may name a cluster that the pod must not use.
    env.set_default("KUBECONFIG", kubeconfig.to_string_lossy());
    env
}
