//! The input and the output of feature steps: the configuration of a driver and its objects.

mod conf;
mod pod_group;
mod spark_pod;

use k8s_openapi::{
    api::{
        core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service},
        networking::v1::NetworkPolicy,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::yaml;
pub(crate) use conf::DriverConf;
pub use pod_group::PodGroup;
pub(crate) use spark_pod::SparkPod;

/// The key of the executors' pod template in its `ConfigMap` (`Constants.POD_TEMPLATE_KEY`).
pub(crate) const EXECUTOR_TEMPLATE: &str = "podspec-configmap-key";

/// The driver of one attempt. Objects that the pod can't be scheduled without are created before the pod, all others after it;
/// the pod then owns them all.
#[derive(Debug, Clone)]
pub struct DriverObjects {
    pub namespace: String,
    pub pre_resources: Vec<Object>,
    pub pod: Pod,
    /// The objects of the feature steps, in the order of the steps; the main `ConfigMap` comes last.
    pub resources: Vec<Object>,
}

impl DriverObjects {
    /// Returns the executors' pod template, which the driver reads from a `ConfigMap`, parsed as the driver parses it.
    pub fn executor_template(&self) -> Option<Value> {
        let mut maps = self.resources.iter().filter_map(|object| match object {
            Object::ConfigMap(map) => map.data.as_ref()?.get(EXECUTOR_TEMPLATE),
            _ => None,
        });
        // The template was parsed when the driver was built.
        maps.find_map(|text| yaml::parse(text).ok())
    }

    /// Replaces the text of the executors' pod template by the JSON of this value, so that the driver's parser can't read
    /// anything else from it.
    pub fn set_executor_template(&mut self, template: &Value) {
        for object in &mut self.resources {
            if let Object::ConfigMap(ConfigMap { data: Some(data), .. }) = object
                && let Some(text) = data.get_mut(EXECUTOR_TEMPLATE)
            {
                *text = template.to_string();
            }
        }
    }

    /// Returns the objects as JSON, in the order of creation.
    ///
    /// # Errors
    /// An object can't be written as JSON, which doesn't happen.
    pub fn to_values(&self) -> serde_json::Result<Vec<Value>> {
        // The Kubernetes types serialize `apiVersion` and `kind` themselves.
        let before = self.pre_resources.iter().map(serde_json::to_value);
        let beside = self.resources.iter().map(serde_json::to_value);
        before.chain([serde_json::to_value(&self.pod)]).chain(beside).collect()
    }

    /// Returns the objects as a Kubernetes `List`, in the order of creation.
    ///
    /// # Errors
    /// An object can't be written as JSON, which doesn't happen.
    pub fn to_list(&self) -> serde_json::Result<Value> {
        let mut list = json!({ "apiVersion": "v1", "kind": "List" });
        list["items"] = Value::Array(self.to_values()?);
        Ok(list)
    }
}

/// Returns the executors' pod template in objects that were stored as JSON.
pub fn executor_template_of(objects: &[Value]) -> Option<Value> {
    let mut texts = objects.iter().filter_map(|object| object["data"][EXECUTOR_TEMPLATE].as_str());
    texts.find_map(|text| yaml::parse(text).ok())
}

/// One object of a driver other than its pod.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
#[expect(clippy::large_enum_variant, reason = "a driver has four of them, and they are short-lived")]
pub enum Object {
    Service(Service),
    NetworkPolicy(NetworkPolicy),
    Secret(Secret),
    ConfigMap(ConfigMap),
    PersistentVolumeClaim(PersistentVolumeClaim),
    PodGroup(PodGroup),
}

impl Object {
    pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
        match self {
            Self::Service(object) => &mut object.metadata,
            Self::NetworkPolicy(object) => &mut object.metadata,
            Self::Secret(object) => &mut object.metadata,
            Self::ConfigMap(object) => &mut object.metadata,
            Self::PersistentVolumeClaim(object) => &mut object.metadata,
            Self::PodGroup(object) => &mut object.metadata,
        }
    }
}
