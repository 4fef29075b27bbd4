//! Feature steps: each adds one thing to the driver. Each step has its own file, named as in Spark; the table below defines
//! their order. A new step is a new file and a new entry in the table.

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

pub use pod_template_config_map::ExecutorTemplateMount;

use k8s_openapi::{
    api::core::v1::EnvVar,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::ObjectMeta},
};

use super::{
    driver::{DriverConf, Object, SparkPod},
    refusal::Refusal,
    version::SparkVersion,
};

/// Spark's `KubernetesFeatureConfigStep`. A step has read and checked the configuration when it is created, so these methods
/// can't fail.
pub(crate) trait FeatureStep {
    fn configure_pod(&self, pod: &mut SparkPod);

    /// Returns properties for the driver's file. They override those of the configuration and of earlier steps.
    fn additional_properties(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Returns objects that have to exist before the pod.
    fn additional_pre_resources(&self) -> Vec<Object> {
        Vec::new()
    }

    /// Returns objects that are created after the pod and owned by it.
    fn additional_resources(&self) -> Vec<Object> {
        Vec::new()
    }
}

type Step<'a> = Box<dyn FeatureStep + 'a>;

/// A step that has been constructed. Spark's steps read some properties in their constructors and others only when they
/// run, after all steps are constructed and excluded ones are dropped. Calling this function reads the latter, so that of
/// several errors the same one is reported as by Spark.
type Made<'a> = Box<dyn FnOnce() -> Result<Step<'a>, Refusal> + 'a>;

/// Wraps a step that reads no more properties when it runs.
fn ready<'a>(step: impl FeatureStep + 'a) -> Made<'a> {
    Box::new(move || Ok(Box::new(step)))
}

/// One entry of the table: a step by its class in Spark, and the release that introduced it.
struct Entry {
    class: &'static str,
    since: SparkVersion,
    new: for<'a> fn(&'a DriverConf<'a>) -> Result<Made<'a>, Refusal>,
}

/// The Java package of Spark's steps, by which properties name them.
const PACKAGE: &str = "org.apache.spark.deploy.k8s.features.";

/// The driver's steps in Spark's order (`KubernetesDriverBuilder`).
const DRIVER_STEPS: [Entry; 12] = [
    Entry {
        class: "BasicDriverFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| basic_driver::BasicDriver::make(conf),
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
        new: |conf| mount_volumes::MountVolumes::make(conf),
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

/// Returns the steps of one driver, in the order in which they run.
pub(crate) fn driver_steps<'a>(conf: &'a DriverConf<'a>) -> Result<Vec<Step<'a>>, Refusal> {
    // As in Spark, classes that the request names are loaded before Spark's own steps are constructed.
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

/// Returns the steps that `spark.kubernetes.driver.pod.excludedFeatureSteps` (4.1+) names.
fn excluded_steps(conf: &DriverConf<'_>) -> Vec<String> {
    match conf.version >= SparkVersion::V4_1 {
        true => conf.list("spark.kubernetes.driver.pod.excludedFeatureSteps"),
        false => Vec::new(),
    }
}

/// Returns metadata for an object of this driver.
pub(crate) fn object_meta(conf: &DriverConf<'_>, name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: Some(conf.namespace().to_owned()), ..Default::default() }
}

/// Returns an environment variable with a plain value.
pub(crate) fn env(name: &str, value: &str) -> EnvVar {
    EnvVar { name: name.to_owned(), value: Some(value.to_owned()), value_from: None }
}

/// Parses a quantity as far as Spark's client checks it (fabric8's `Quantity.parse`): it isn't empty, and the number is
/// followed by an exponent or a unit, not both. The API server checks the rest.
pub(crate) fn quantity(key: &str, text: &str) -> Result<Quantity, Refusal> {
    let unit = text.find(|c| "eEinumkKMGTP".contains(c)).map_or("", |at| &text[at..]);
    let muddled = unit.contains(|c: char| c.is_ascii_digit()) && unit.ends_with(char::is_alphabetic);
    if text.is_empty() || muddled {
        let reason = "Invalid quantity string format passed. Give one such as 500m or 2Gi, or leave the property out.";
        return Err(Refusal::property(key, reason));
    }
    Ok(Quantity(text.to_owned()))
}
