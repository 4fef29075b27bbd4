//! The driver pod as feature steps see it.

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, PodSpec, Volume, VolumeMount};

/// A driver pod in the making. The driver's container is kept apart until every step has seen it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SparkPod {
    pub(crate) pod: Pod,
    pub(crate) container: Container,
}

impl SparkPod {
    /// The pod's spec, empty at first.
    pub(crate) fn spec(&mut self) -> &mut PodSpec {
        self.pod.spec.get_or_insert_default()
    }

    /// Adds a volume and where the driver's container sees it.
    pub(crate) fn mount(&mut self, volume: Volume, mount: VolumeMount) {
        self.spec().volumes.get_or_insert_default().push(volume);
        self.container.volume_mounts.get_or_insert_default().push(mount);
    }

    /// Adds a variable of the driver's container, after those that are there.
    pub(crate) fn add_env(&mut self, variable: EnvVar) {
        self.container.env.get_or_insert_default().push(variable);
    }

    /// The pod in its namespace, with the driver's container as its last one.
    pub(crate) fn assemble(mut self, namespace: &str) -> Pod {
        self.pod.metadata.namespace = Some(namespace.to_owned());
        let container = std::mem::take(&mut self.container);
        self.spec().containers.push(container);
        self.pod
    }
}
