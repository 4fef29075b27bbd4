//! The fold over feature steps (Spark's `KubernetesDriverBuilder` and `Client`).

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, PodSpec, Volume, VolumeMount};

use super::{DriverConf, DriverObjects, config_map::MainConfigMap};
use crate::spark::{Refusal, features, pod_template};

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

    /// The pod with the driver's container as its last one.
    fn assemble(mut self) -> Pod {
        let container = std::mem::take(&mut self.container);
        self.spec().containers.push(container);
        self.pod
    }
}

/// Runs all steps that the configuration leaves in, in Spark's order, then adds the main `ConfigMap`.
pub(super) fn build(conf: &DriverConf<'_>) -> Result<DriverObjects, Refusal> {
    let mut pod = pod_template::load(conf)?;
    let steps = features::driver_steps(conf)?;
    let mut properties = conf.app.conf.clone();
    let mut pre_resources = Vec::new();
    let mut resources = Vec::new();
    for step in &steps {
        step.configure_pod(&mut pod);
        for (key, value) in step.additional_properties() {
            properties.set(&key, value);
        }
        pre_resources.extend(step.additional_pre_resources());
        resources.extend(step.additional_resources());
    }
    let config_map = MainConfigMap::new(conf, &properties)?;
    config_map.mount(&mut pod);
    resources.push(config_map.into_object());
    Ok(DriverObjects { namespace: conf.namespace().to_owned(), pre_resources, pod: pod.assemble(), resources })
}
