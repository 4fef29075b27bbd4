//! The main `ConfigMap`: the properties file of the driver and the files of the submitter's `SPARK_CONF_DIR`, and where
//! they are mounted.

mod conf_dir;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, KeyToPath};

use crate::{
    driver::{DriverConf, Object, SparkPod},
    features::{env, mounted, object_meta},
    properties,
    refusal::Refusal,
};

const VOLUME: &str = "spark-conf-volume-driver";
const MOUNT_PATH: &str = "/opt/spark/conf";
const PROPERTIES_FILE: &str = "spark.properties";

pub(super) struct MainConfigMap {
    name: String,
    /// The mounted entries, sorted, as they are in Spark.
    items: Vec<KeyToPath>,
    object: ConfigMap,
}

impl MainConfigMap {
    /// Creates the map. `properties` are those of the configuration and of all steps.
    ///
    /// # Errors
    /// A [`Refusal`] if the configured limit of its size is invalid.
    pub(super) fn new(conf: &DriverConf<'_>, properties: &BTreeMap<&str, &str>) -> Result<Self, Refusal> {
        let name = conf.names.config_map.clone();
        let text =
            properties::file(&name, conf.context.submitted_at, properties.iter().map(|(key, value)| (*key, *value)));
        let mut data: BTreeMap<String, String> = conf_dir::files(conf)?;
        data.insert(PROPERTIES_FILE.to_owned(), text);
        let item = |key: &String| KeyToPath { mode: Some(0o644), ..mounted::item(key, key) };
        let items = data.keys().map(item).collect();
        // Not a file: an entry that Spark adds to the map and doesn't mount.
        data.insert("spark.kubernetes.namespace".to_owned(), conf.namespace().to_owned());
        let metadata = object_meta(conf, &name);
        let object = ConfigMap { metadata, data: Some(data), immutable: Some(true), ..Default::default() };
        Ok(Self { name, items, object })
    }

    pub(super) fn mount(&self, pod: &mut SparkPod) {
        let volume = mounted::config_map(VOLUME, self.name.clone(), Some(self.items.clone()));
        pod.mount(volume, mounted::mount(VOLUME, MOUNT_PATH));
        pod.add_env(env("SPARK_CONF_DIR", MOUNT_PATH));
    }

    pub(super) fn into_object(self) -> Object {
        Object::ConfigMap(self.object)
    }
}
