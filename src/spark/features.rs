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
    volumes,
};

/// Spark's `KubernetesFeatureConfigStep`. A step reads and checks the configuration when it is made; what it then does
/// can't fail.
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

/// One line of the table: a step by its class in Spark, and the release that brought it.
struct Entry {
    class: &'static str,
    since: SparkVersion,
    new: for<'a> fn(&'a DriverConf<'a>) -> Result<Step<'a>, Refusal>,
}

/// Where Spark keeps its steps: how properties name them.
const PACKAGE: &str = "org.apache.spark.deploy.k8s.features.";

/// Spark's order of the driver's steps (`KubernetesDriverBuilder`).
const DRIVER_STEPS: [Entry; 12] = [
    Entry {
        class: "BasicDriverFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(Box::new(basic_driver::BasicDriver::new(conf)?)),
    },
    Entry {
        class: "DriverKubernetesCredentialsFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(Box::new(driver_kubernetes_credentials::DriverKubernetesCredentials::new(conf)?)),
    },
    Entry {
        class: "DriverServiceFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(Box::new(driver_service::DriverService::new(conf)?)),
    },
    Entry {
        class: "NetworkPolicyFeatureStep",
        since: SparkVersion::V4_2,
        new: |conf| Ok(Box::new(network_policy::NetworkPolicyStep::new(conf))),
    },
    Entry {
        class: "MountSecretsFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(Box::new(mount_secrets::MountSecrets::new(conf))),
    },
    Entry {
        class: "EnvSecretsFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(Box::new(env_secrets::EnvSecrets::new(conf)?)),
    },
    Entry {
        class: "MountVolumesFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(Box::new(mount_volumes::MountVolumes::new(conf)?)),
    },
    Entry {
        class: "DriverCommandFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(Box::new(driver_command::DriverCommand::new(conf))),
    },
    Entry {
        class: "HadoopConfDriverFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(Box::new(hadoop_conf::HadoopConf::new(conf)?)),
    },
    Entry {
        class: "KerberosConfDriverFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(Box::new(kerberos_conf::KerberosConf::new(conf)?)),
    },
    Entry {
        class: "PodTemplateConfigMapStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(Box::new(pod_template_config_map::PodTemplateConfigMap::new(conf)?)),
    },
    Entry {
        class: "LocalDirsFeatureStep",
        since: SparkVersion::V3_5,
        new: |conf| Ok(Box::new(local_dirs::LocalDirs::new(conf)?)),
    },
];

/// The steps of one driver. As in Spark, a step is made even when it is excluded, and refuses then what Spark's would
/// refuse.
pub(crate) fn driver_steps<'a>(conf: &'a DriverConf<'a>) -> Result<Vec<Step<'a>>, Refusal> {
    volumes::check_executors(conf, conf.version)?;
    let mut steps = Vec::new();
    for entry in DRIVER_STEPS.iter().filter(|entry| entry.since <= conf.version) {
        let step = (entry.new)(conf)?;
        if !is_excluded(conf, entry.class) {
            steps.push(step);
        }
    }
    steps.extend(user_steps::user_steps(conf)?);
    Ok(steps)
}

/// Whether `spark.kubernetes.driver.pod.excludedFeatureSteps` (4.1+) names the step.
fn is_excluded(conf: &DriverConf<'_>, class: &str) -> bool {
    conf.version >= SparkVersion::V4_1
        && conf
            .list("spark.kubernetes.driver.pod.excludedFeatureSteps")
            .iter()
            .any(|excluded| excluded.strip_prefix(PACKAGE) == Some(class))
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
