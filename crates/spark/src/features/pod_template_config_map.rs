//! `PodTemplateConfigMapStep`: ships the executors' pod template to the driver, which reads it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Volume, VolumeMount};
use serde_json::Value;

use super::{FeatureStep, mounted, object_meta};
use crate::{
    driver::{DriverConf, EXECUTOR_TEMPLATE as DATA_KEY, Object, SparkPod},
    pod_template,
    refusal::Refusal,
    yaml,
};

/// The field of the request for an inline template.
const FIELD: &str = "executorPodTemplate";
const KEY: &str = "spark.kubernetes.executor.podTemplateFile";
const VOLUME: &str = "pod-template-volume";
const MOUNT_PATH: &str = "/opt/spark/pod-template";
const FILE: &str = "pod-spec-template.yml";

/// How a driver finds the executors' pod template, which is an entry of a `ConfigMap`.
#[derive(Debug, Clone)]
pub struct ExecutorTemplateMount {
    /// A volume of the driver's pod.
    pub volume: Volume,
    /// Its mount in the driver's container.
    pub mount: VolumeMount,
    /// The property that names the file.
    pub property: (String, String),
    /// The key of the entry.
    pub entry: &'static str,
}

impl ExecutorTemplateMount {
    /// Returns the mount of the template in the `ConfigMap` of this name.
    pub fn for_config_map(name: String) -> Self {
        let items = Some(vec![mounted::item(DATA_KEY, FILE)]);
        Self {
            volume: mounted::config_map(VOLUME, name, items),
            mount: mounted::mount(VOLUME, MOUNT_PATH),
            property: (KEY.to_owned(), format!("{MOUNT_PATH}/{FILE}")),
            entry: DATA_KEY,
        }
    }
}

pub(super) struct PodTemplateConfigMap<'a> {
    conf: &'a DriverConf<'a>,
    template: Option<String>,
}

impl<'a> PodTemplateConfigMap<'a> {
    pub(super) fn new(conf: &'a DriverConf<'a>) -> Result<Self, Refusal> {
        let (field, template) = match &conf.app.executor_pod_template {
            Some(Value::String(text)) => (FIELD.to_owned(), Some(text.clone())),
            Some(template) => (FIELD.to_owned(), Some(template.to_string())),
            None => (Refusal::property_field(KEY), file(conf)?),
        };
        if let Some(text) = &template {
            let refused = |reason| Refusal::field(&field, format!("No driver could read this template: {reason}"));
            let values = values(text).map_err(refused)?;
            if conf.app.executor_pod_template.is_some() {
                pod_template::pod(values, conf.version).map_err(|reason| Refusal::field(&field, reason))?;
            }
        }
        Ok(Self { conf, template })
    }

    fn name(&self) -> String {
        format!("{}-driver-podspec-conf-map", self.conf.names.resource_prefix)
    }
}

fn file(conf: &DriverConf<'_>) -> Result<Option<String>, Refusal> {
    let found = conf.submitter_text(KEY, "send the template itself as executorPodTemplate")?;
    Ok(found.map(|(_, text)| text.into_owned()))
}

/// Parses a template. Spark passes the text on without reading it, and its driver fails later; here text that no driver
/// could parse is refused at once. As in Spark, the driver checks whether a file is a pod. An inline template is validated
/// in the same way as that of the driver.
fn values(text: &str) -> Result<Value, String> {
    match yaml::parse(text) {
        Ok(values @ Value::Object(_)) => Ok(values),
        Ok(Value::Null) => Err("it is empty.".to_owned()),
        Ok(other) => Err(pod_template::no_map(&other)),
        Err(error) => Err(format!("{error}.")),
    }
}

impl FeatureStep for PodTemplateConfigMap<'_> {
    fn configure_pod(&self, pod: &mut SparkPod) {
        if self.template.is_none() {
            return;
        }
        let ExecutorTemplateMount { volume, mount, .. } = ExecutorTemplateMount::for_config_map(self.name());
        pod.mount(volume, mount);
    }

    fn additional_properties(&self) -> Vec<(String, String)> {
        self.template.iter().map(|_| ExecutorTemplateMount::for_config_map(self.name()).property).collect()
    }

    fn additional_resources(&self) -> Vec<Object> {
        let map = |text: &String| ConfigMap {
            metadata: object_meta(self.conf, &self.name()),
            data: Some(BTreeMap::from([(DATA_KEY.to_owned(), text.clone())])),
            immutable: Some(true),
            ..Default::default()
        };
        self.template.iter().map(|text| Object::ConfigMap(map(text))).collect()
    }
}
