//! `MountSecretsFeatureStep`: whole Secrets as directories of the driver (`spark.kubernetes.driver.secrets.<secret>`).

use std::collections::BTreeMap;

use super::{FeatureStep, mounted};
use crate::driver::{DriverConf, SparkPod};

pub(super) struct MountSecrets {
    /// Mount paths by the Secret's name. Spark's order is that of a hash map; here they are sorted by name.
    paths: BTreeMap<String, String>,
}

impl MountSecrets {
    pub(super) fn new(conf: &DriverConf<'_>) -> Self {
        Self { paths: conf.with_prefix("spark.kubernetes.driver.secrets.") }
    }
}

impl FeatureStep for MountSecrets {
    fn configure_pod(&self, pod: &mut SparkPod) {
        for (secret, path) in &self.paths {
            let name = format!("{secret}-volume");
            pod.mount(mounted::secret(&name, secret.clone()), mounted::mount(&name, path));
        }
    }
}
