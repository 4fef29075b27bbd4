//! The objects of an attempt that an overlay changes: the pod, the main `ConfigMap` and that of the executors' template.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use sparkgate_spark::{ExecutorTemplateMount, executor_template_of};

use super::{
    error::{OverlayError, unreadable},
    pods,
};
use crate::manifest::Manifest;

/// The key of the properties in the main `ConfigMap`.
const PROPERTIES: &str = "spark.properties";
/// Spark's name for the container of an executor (`DEFAULT_EXECUTOR_CONTAINER_NAME`).
const EXECUTOR_CONTAINER: &str = "spark-kubernetes-executor";

pub(super) struct Objects {
    pub(super) pod: Value,
    /// The objects that the pod owns. The main `ConfigMap` is the last.
    pub(super) beside: Vec<Value>,
}

impl Objects {
    pub(super) fn parse(manifest: &Manifest) -> Result<Self, OverlayError> {
        let parse = |object: &RawValue| -> Result<Value, OverlayError> {
            serde_json::from_str(object.get()).map_err(|error| unreadable(format!("an object isn't JSON: {error}")))
        };
        let beside = manifest.beside.iter().map(|object| parse(object)).collect::<Result<_, _>>()?;
        Ok(Self { pod: parse(&manifest.pod)?, beside })
    }

    /// Returns the manifest with these objects.
    pub(super) fn write(self, manifest: &Manifest) -> Result<Manifest, OverlayError> {
        let write = |object: &Value| to_raw_value(object).map_err(|error| unreadable(error.to_string()));
        Ok(Manifest {
            before: manifest.before.clone(),
            pod: write(&self.pod)?,
            beside: self.beside.iter().map(write).collect::<Result<_, _>>()?,
            judged: manifest.judged.clone(),
        })
    }

    pub(super) fn properties(&mut self) -> Result<&mut Value, OverlayError> {
        let main = self.beside.iter_mut().rev().find_map(|object| object.pointer_mut("/data/spark.properties"));
        main.filter(|text| text.is_string()).ok_or_else(|| unreadable("there is no ConfigMap with properties"))
    }

    pub(super) fn properties_text(&self) -> Result<&str, OverlayError> {
        let text = self.beside.iter().rev().find_map(|object| object["data"][PROPERTIES].as_str());
        text.ok_or_else(|| unreadable("there is no ConfigMap with properties"))
    }

    /// Adds tolerations to the executors' pod template, which may not exist yet. Returns the properties that name a new one.
    pub(super) fn tolerate(&mut self, tolerations: &[Toleration]) -> Result<BTreeMap<String, String>, OverlayError> {
        let mut template = executor_template_of(&self.beside);
        let is_new = template.is_none();
        let template = template.get_or_insert_with(
            // Spark takes the first container of a template for its own.
            || json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": EXECUTOR_CONTAINER}]}}),
        );
        pods::tolerate("executor", template, tolerations)?;
        // The driver reads JSON, which is YAML, in one way only.
        let text = template.to_string();
        if is_new { self.mount_template(text) } else { self.replace_template(text) }
    }

    /// Replaces node selectors of the driver's pod and in the executors' template. Returns the properties that replace those of
    /// executors, and that stand for both (`spark.kubernetes.node.selector.*`).
    pub(super) fn select_nodes(
        &mut self,
        wanted: &BTreeMap<String, Option<String>>,
    ) -> Result<BTreeMap<String, Option<String>>, OverlayError> {
        pods::select_nodes("driver", &mut self.pod, wanted)?;
        if let Some(template) = executor_template_of(&self.beside) {
            let mut changed = template.clone();
            pods::select_nodes("executor", &mut changed, wanted)?;
            if changed != template {
                self.replace_template(changed.to_string())?;
            }
        }
        let mut set = BTreeMap::new();
        for (key, wanted) in wanted {
            set.insert(format!("spark.kubernetes.driver.node.selector.{key}"), None);
            set.insert(format!("spark.kubernetes.executor.node.selector.{key}"), None);
            set.insert(format!("spark.kubernetes.node.selector.{key}"), wanted.clone());
        }
        Ok(set)
    }

    fn replace_template(&mut self, text: String) -> Result<BTreeMap<String, String>, OverlayError> {
        let entry = ExecutorTemplateMount::for_config_map(String::new()).entry;
        let mut present = self.beside.iter_mut().filter_map(|object| object.get_mut("data")?.get_mut(entry));
        *present.next().ok_or_else(|| unreadable("the executors' template is in no ConfigMap"))? = text.into();
        Ok(BTreeMap::new())
    }

    /// Adds a `ConfigMap` with the template, as `PodTemplateConfigMapStep` would have done.
    fn mount_template(&mut self, text: String) -> Result<BTreeMap<String, String>, OverlayError> {
        let main = self.beside.last().ok_or_else(|| unreadable("there is no main ConfigMap"))?;
        let name = main["metadata"]["name"].as_str().ok_or_else(|| unreadable("the main ConfigMap has no name"))?;
        // The name of the main one is unique in each attempt.
        let name = format!("{name}-executor-template");
        let mut metadata = json!({ "name": name });
        if let Some(namespace) = main["metadata"].get("namespace") {
            metadata["namespace"] = namespace.clone();
        }
        let ExecutorTemplateMount { volume, mount, property, entry } = ExecutorTemplateMount::for_config_map(name);
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": true, "data": {entry: text}});
        let [volume, mount] = [serde_json::to_value(volume), serde_json::to_value(mount)];
        let of_json = |error: serde_json::Error| unreadable(error.to_string());
        pods::mount(&mut self.pod, volume.map_err(of_json)?, mount.map_err(of_json)?)?;
        // The main one comes last: the driver starts once it exists.
        self.beside.insert(self.beside.len() - 1, map);
        Ok([property].into())
    }
}
