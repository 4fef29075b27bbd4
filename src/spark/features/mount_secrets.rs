//! `MountSecretsFeatureStep`: whole Secrets as folders of the driver (`spark.kubernetes.driver.secrets.<secret>`).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{SecretVolumeSource, Volume, VolumeMount};

use super::FeatureStep;
use crate::spark::driver::{DriverConf, SparkPod};

pub(super) struct MountSecrets {
    /// Mount paths by the Secret's name. Spark's order is that of a hash map; here it is the names'.
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
            let source = SecretVolumeSource { secret_name: Some(secret.clone()), ..Default::default() };
            let volume = Volume { name: name.clone(), secret: Some(source), ..Default::default() };
            pod.mount(volume, VolumeMount { name, mount_path: path.clone(), ..Default::default() });
        }
    }
}
