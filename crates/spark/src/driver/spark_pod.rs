//! The driver pod that feature steps modify.

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, PodSpec, Volume, VolumeMount};

/// A driver pod that is being built. The driver's container is kept separate until every step has run.
#[derive(Debug, Clone, Default)]
pub(crate) struct SparkPod {
    pub(crate) pod: Pod,
    pub(crate) container: Container,
}

impl SparkPod {
    /// Returns the pod's spec, which is empty at first.
    pub(crate) fn spec(&mut self) -> &mut PodSpec {
        self.pod.spec.get_or_insert_default()
    }

    /// Adds a volume and its mount in the driver's container.
    pub(crate) fn mount(&mut self, volume: Volume, mount: VolumeMount) {
        self.spec().volumes.get_or_insert_default().push(volume);
        self.container.volume_mounts.get_or_insert_default().push(mount);
    }

    /// Adds an environment variable to the driver's container, after the existing ones.
    pub(crate) fn add_env(&mut self, variable: EnvVar) {
        self.container.env.get_or_insert_default().push(variable);
    }

    /// Returns the pod in its namespace, with the driver's container as the last one.
    pub(crate) fn assemble(mut self, namespace: &str) -> Pod {
        self.pod.metadata.namespace = Some(namespace.to_owned());
        let container = std::mem::take(&mut self.container);
        self.spec().containers.push(container);
        self.pod
    }
}
