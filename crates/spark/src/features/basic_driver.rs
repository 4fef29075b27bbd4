//! `BasicDriverFeatureStep`: image, identity, environment, sizes and placement of the driver.

mod custom_resources;
mod memory;

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{
        ContainerPort, EnvVar, EnvVarSource, LocalObjectReference, ObjectFieldSelector, ResourceRequirements,
    },
    apimachinery::pkg::api::resource::Quantity,
};

use super::{FeatureStep, Made, driver_ports::DriverPorts, env, quantity};
use crate::{
    driver::{DriverConf, SparkPod},
    refusal::Refusal,
    version::SparkVersion,
};
use memory::DriverMemory;

const CONTAINER_NAME: &str = "spark-kubernetes-driver";
const IMAGE_KEYS: [&str; 2] = ["spark.kubernetes.driver.container.image", "spark.kubernetes.container.image"];

pub(super) struct BasicDriver<'a> {
    conf: &'a DriverConf<'a>,
    image: String,
    pull_policy: String,
    labels: BTreeMap<String, String>,
    ports: DriverPorts,
    /// The value of `driver.request.cores`, or of `spark.driver.cores`.
    cpu_request: Quantity,
    cpu_limit: Option<Quantity>,
    memory: DriverMemory,
    custom_resources: BTreeMap<String, Quantity>,
    /// `None` before 4.3, which was the first release to set it.
    allow_privilege_escalation: Option<bool>,
}

impl<'a> BasicDriver<'a> {
    pub(super) fn make(conf: &'a DriverConf<'a>) -> Result<Made<'a>, Refusal> {
        let image = image(conf)?;
        let allow_privilege_escalation = allow_privilege_escalation(conf)?;
        let cores = conf.int("spark.driver.cores")?.unwrap_or(1);
        let memory = DriverMemory::new(conf)?;
        Ok(Box::new(move || {
            let request = cpu(conf, "spark.kubernetes.driver.request.cores")?;
            let policies = ["Always", "Never", "IfNotPresent"];
            Ok(Box::new(Self {
                cpu_request: request.unwrap_or_else(|| Quantity(cores.to_string())),
                cpu_limit: cpu(conf, "spark.kubernetes.driver.limit.cores")?,
                custom_resources: custom_resources::limits(conf)?,
                ports: DriverPorts::for_container(conf)?,
                pull_policy: conf
                    .one_of("spark.kubernetes.container.image.pullPolicy", &policies)?
                    .unwrap_or("IfNotPresent")
                    .to_owned(),
                labels: conf.labels()?,
                conf,
                image,
                memory,
                allow_privilege_escalation,
            }))
        }))
    }

    /// Returns `SPARK_USER`, the user as which the driver acts. Since 4.3 a proxy user overrides the submitter's variable.
    fn spark_user(&self) -> &str {
        let proxy_user = self.conf.app.proxy_user.as_deref();
        let variable = self.conf.app.submitter_env.spark_user.as_deref();
        let named = match self.conf.version >= SparkVersion::V4_3 {
            true => proxy_user.or(variable),
            false => variable.or(proxy_user),
        };
        named.unwrap_or(self.conf.context.user)
    }

    fn environment(&self) -> Vec<EnvVar> {
        let mut variables =
            vec![env("SPARK_USER", self.spark_user()), env("SPARK_APPLICATION_ID", &self.conf.names.app_id)];
        variables.extend(self.conf.app.driver_env.iter().map(|(name, value)| env(name, value)));
        let pod_ip = ObjectFieldSelector { api_version: Some("v1".to_owned()), field_path: "status.podIP".to_owned() };
        variables.push(EnvVar {
            name: "SPARK_DRIVER_BIND_ADDRESS".to_owned(),
            value: None,
            value_from: Some(EnvVarSource { field_ref: Some(pod_ip), ..Default::default() }),
        });
        variables
    }

    fn size(&self, resources: &mut ResourceRequirements) {
        let memory = Quantity(format!("{}Mi", self.memory.total_mib));
        let requests = resources.requests.get_or_insert_default();
        requests.insert("cpu".to_owned(), self.cpu_request.clone());
        requests.insert("memory".to_owned(), memory.clone());
        let limits = resources.limits.get_or_insert_default();
        if let Some(cpu) = &self.cpu_limit {
            limits.insert("cpu".to_owned(), cpu.clone());
        }
        limits.insert("memory".to_owned(), memory);
        limits.extend(self.custom_resources.clone());
    }

    fn configure_metadata(&self, pod: &mut SparkPod) {
        let metadata = &mut pod.pod.metadata;
        metadata.name = Some(self.conf.names.driver_pod.clone());
        metadata.labels.get_or_insert_default().extend(self.labels.clone());
        extend(&mut metadata.annotations, self.conf.annotations());
    }

    fn configure_spec(&self, pod: &mut SparkPod) {
        let spec = pod.spec();
        spec.restart_policy = Some("Never".to_owned());
        for prefix in ["spark.kubernetes.node.selector.", "spark.kubernetes.driver.node.selector."] {
            extend(&mut spec.node_selector, self.conf.with_prefix(prefix));
        }
        let secrets = self.conf.list("spark.kubernetes.container.image.pullSecrets");
        if !secrets.is_empty() {
            let references = secrets.into_iter().map(|name| LocalObjectReference { name });
            spec.image_pull_secrets.get_or_insert_default().extend(references);
        }
        let scheduler = ["spark.kubernetes.driver.scheduler.name", "spark.kubernetes.scheduler.name"];
        if let Some(name) = self.conf.first(&scheduler) {
            spec.scheduler_name = Some(name.to_owned());
        }
    }
}

impl FeatureStep for BasicDriver<'_> {
    fn configure_pod(&self, pod: &mut SparkPod) {
        self.configure_metadata(pod);
        self.configure_spec(pod);
        let container = &mut pod.container;
        if container.name.is_empty() {
            CONTAINER_NAME.clone_into(&mut container.name);
        }
        container.image = Some(self.image.clone());
        container.image_pull_policy = Some(self.pull_policy.clone());
        let ports = self.ports.named().map(|(name, port)| ContainerPort {
            name: Some(name.to_owned()),
            container_port: port,
            protocol: Some("TCP".to_owned()),
            ..Default::default()
        });
        container.ports.get_or_insert_default().extend(ports);
        container.env.get_or_insert_default().extend(self.environment());
        self.size(container.resources.get_or_insert_default());
        if let Some(allowed) = self.allow_privilege_escalation {
            container.security_context.get_or_insert_default().allow_privilege_escalation = Some(allowed);
        }
    }

    fn additional_properties(&self) -> Vec<(String, String)> {
        let names = self.conf.names;
        [
            ("spark.kubernetes.driver.pod.name", names.driver_pod.as_str()),
            ("spark.app.id", &names.app_id),
            ("spark.kubernetes.submitInDriver", "true"),
            ("spark.kubernetes.memoryOverheadFactor", &self.memory.default_factor),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }
}

fn cpu(conf: &DriverConf<'_>, key: &str) -> Result<Option<Quantity>, Refusal> {
    conf.get(key).map(|text| quantity(key, text)).transpose()
}

/// Returns the driver's image; since 4.1 `{{SPARK_VERSION}}` in it is replaced.
fn image(conf: &DriverConf<'_>) -> Result<String, Refusal> {
    let image = conf
        .first(&IMAGE_KEYS)
        .ok_or_else(|| Refusal::property(IMAGE_KEYS[1], "Must specify the driver container image"))?;
    Ok(match conf.version >= SparkVersion::V4_1 {
        true => image.replace("{{SPARK_VERSION}}", &conf.version.to_string()),
        false => image.to_owned(),
    })
}

/// Reads whether privileges may be escalated. The common key is read only if the driver's own key isn't set. As in Spark, the
/// message for an invalid value always names the common key.
fn allow_privilege_escalation(conf: &DriverConf<'_>) -> Result<Option<bool>, Refusal> {
    if conf.version < SparkVersion::V4_3 {
        return Ok(None);
    }
    let common = "spark.kubernetes.securityContext.allowPrivilegeEscalation";
    let driver = "spark.kubernetes.driver.securityContext.allowPrivilegeEscalation";
    let own =
        conf.boolean(driver).map_err(|refusal| Refusal { reason: refusal.reason.replace(driver, common), ..refusal });
    Ok(Some(match own? {
        Some(allowed) => allowed,
        None => conf.boolean(common)?.unwrap_or(false),
    }))
}

/// Adds entries to a map of a Kubernetes object. The map stays absent if there are no entries.
fn extend(map: &mut Option<BTreeMap<String, String>>, entries: BTreeMap<String, String>) {
    if !entries.is_empty() {
        map.get_or_insert_default().extend(entries);
    }
}
