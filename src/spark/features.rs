//! Feature steps: each adds one thing to the driver. One file per step, named as Spark names it; the table below is
//! their order. A new step is a new file and a new line in the table.

mod basic_driver;
mod driver_command;
mod driver_kubernetes_credentials;
mod driver_ports;
mod driver_service;
mod env_secrets;
mod hadoop_conf;
mod kerberos_conf;
mod local_dirs;
mod mount_secrets;
mod mount_volumes;
pub(crate) mod mounted;
mod network_policy;
mod pod_template_config_map;
mod user_steps;
mod volcano;

use k8s_openapi::{
    api::core::v1::EnvVar,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};

use super::{
    Refusal, SparkVersion,
    driver::{DriverConf, Object, SparkPod},
};

/// Spark's `KubernetesFeatureConfigStep`. A step has read and checked the configuration before; what it then does can't
/// fail.
pub(crate) trait FeatureStep {
    fn configure_pod(&self, pod: &mut SparkPod);

    /// Properties for the driver's file, over those of the configuration and of earlier steps.
    fn additional_properties(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Objects that have to exist before the pod.
    fn additional_pre_resources(&self) -> Vec<Object> {
        Vec::new()
    }

    /// Objects beside the pod, to be owned by it.
    fn additional_resources(&self) -> Vec<Object> {
        Vec::new()
    }
}

type Step<'a> = Box<dyn FeatureStep + 'a>;

/// A step that was made. Spark's steps read some properties when they are made and others only at work, when all steps
/// are made and excluded ones left out; called, this reads the latter. So of several faults the same one is told.
type Made<'a> = Box<dyn FnOnce() -> Result<Step<'a>, Refusal> + 'a>;

/// A step that reads nothing more at work.
fn ready<'a>(step: impl FeatureStep + 'a) -> Made<'a> {
    Box::new(move || Ok(Box::new(step)))
}

/// One line of the table: a step by its class in Spark, and the release that brought it.
struct Entry {
    class: &'static str,
    since: SparkVersion,
    new: for<'a> fn(&'a DriverConf<'a>) -> Result<Made<'a>, Refusal>,
}

/// Where Spark keeps its steps: how properties name them.
const PACKAGE: &str = "org.apache.spark.deploy.k8s.features.";

/// Spark's order of the driver's steps (`KubernetesDriverBuilder`).
const DRIVER_STEPS: [Entry; 12] = [
    Entry {
        class: "BasicDriverFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| basic_driver::BasicDriver::prepare(conf),
    },
    Entry {
        class: "DriverKubernetesCredentialsFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(ready(driver_kubernetes_credentials::DriverKubernetesCredentials::new(conf)?)),
    },
    Entry {
        class: "DriverServiceFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(ready(driver_service::DriverService::new(conf)?)),
    },
    Entry {
        class: "NetworkPolicyFeatureStep",
        since: SparkVersion::V4_2,
        new: |conf| Ok(ready(network_policy::NetworkPolicyStep::new(conf))),
    },
    Entry {
        class: "MountSecretsFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(ready(mount_secrets::MountSecrets::new(conf))),
    },
    Entry {
        class: "EnvSecretsFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(Box::new(|| Ok(Box::new(env_secrets::EnvSecrets::new(conf)?)))),
    },
    Entry {
        class: "MountVolumesFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| mount_volumes::MountVolumes::prepare(conf),
    },
    Entry {
        class: "DriverCommandFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(ready(driver_command::DriverCommand::new(conf))),
    },
    Entry {
        class: "HadoopConfDriverFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(ready(hadoop_conf::HadoopConf::new(conf)?)),
    },
    Entry {
        class: "KerberosConfDriverFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(ready(kerberos_conf::KerberosConf::new(conf)?)),
    },
    Entry {
        class: "PodTemplateConfigMapStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(ready(pod_template_config_map::PodTemplateConfigMap::new(conf)?)),
    },
    Entry {
        class: "LocalDirsFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(ready(local_dirs::LocalDirs::new(conf)?)),
    },
];

/// The steps of one driver, in the order of their work.
pub(crate) fn driver_steps<'a>(conf: &'a DriverConf<'a>) -> Result<Vec<Step<'a>>, Refusal> {
    // Classes that are named are loaded before Spark's own steps are made.
    let added = user_steps::user_steps(conf)?;
    let mut made = Vec::new();
    for entry in DRIVER_STEPS.iter().filter(|entry| entry.since <= conf.version) {
        made.push((entry.class, (entry.new)(conf)?));
    }
    let excluded = excluded_steps(conf);
    let is_excluded = |class: &str| excluded.iter().any(|excluded| excluded.strip_prefix(PACKAGE) == Some(class));
    let at_work = made.into_iter().chain(added).filter(|(class, _)| !is_excluded(class));
    at_work.map(|(_, made)| made()).collect()
}

/// What `spark.kubernetes.driver.pod.excludedFeatureSteps` (4.1+) names.
fn excluded_steps(conf: &DriverConf<'_>) -> Vec<String> {
    match conf.version >= SparkVersion::V4_1 {
        true => conf.list("spark.kubernetes.driver.pod.excludedFeatureSteps"),
        false => Vec::new(),
    }
}

/// Metadata of an object of this driver.
pub(crate) fn object_meta(conf: &DriverConf<'_>, name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: Some(conf.namespace().to_owned()), ..Default::default() }
}

/// A plain variable.
pub(crate) fn env(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.to_owned()), value_from: None }
}

/// A quantity, of which Spark's client asks only that there is one; the API server checks the rest.
pub(crate) fn quantity(key: &str, text: &str) -> Result<Quantity, Refusal> {
    if text.is_empty() {
        return Err(Refusal::property(key, "Invalid quantity string format passed. Leave the property out instead."));
    }
    Ok(Quantity(text.to_owned()))
}
