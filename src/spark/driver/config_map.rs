//! The main `ConfigMap`: the properties file of the driver, and where it is mounted.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, ConfigMapVolumeSource, KeyToPath, Volume, VolumeMount};

use super::{DriverConf, Object, SparkPod};
use crate::spark::{
    conf::SparkConf,
    features::{env, object_meta},
    properties,
};

const VOLUME: &str = "spark-conf-volume-driver";
const MOUNT_PATH: &str = "/opt/spark/conf";
const PROPERTIES_FILE: &str = "spark.properties";

pub(super) struct MainConfigMap {
    name: String,
    object: ConfigMap,
}

impl MainConfigMap {
    pub(super) fn new(conf: &DriverConf<'_>, properties: &SparkConf) -> Self {
        let name = conf.names.config_map.clone();
        let text = properties::file(&name, conf.context.submitted_at, properties.iter());
        let data = BTreeMap::from([
            (PROPERTIES_FILE.to_owned(), text),
            // Not a file: a note that Spark leaves in the map, and doesn't mount.
            ("spark.kubernetes.namespace".to_owned(), conf.namespace().to_owned()),
        ]);
        let metadata = object_meta(conf, &name);
        Self { name, object: ConfigMap { metadata, data: Some(data), immutable: Some(true), ..Default::default() } }
    }

    pub(super) fn mount(&self, pod: &mut SparkPod) {
        let file = KeyToPath {
            key: PROPERTIES_FILE.to_owned(),
            path: PROPERTIES_FILE.to_owned(),
            mode: Some(0o644),
            ..Default::default()
        };
        let source = ConfigMapVolumeSource { name: self.name.clone(), items: Some(vec![file]), ..Default::default() };
        let volume = Volume { name: VOLUME.to_owned(), config_map: Some(source), ..Default::default() };
        let mount = VolumeMount { name: VOLUME.to_owned(), mount_path: MOUNT_PATH.to_owned(), ..Default::default() };
        pod.mount(volume, mount);
        pod.add_env(env("SPARK_CONF_DIR", MOUNT_PATH));
    }

    pub(super) fn into_object(self) -> Object {
        Object::ConfigMap(self.object)
    }
}
