//! `HadoopConfDriverFeatureStep`: the submitter's Hadoop configuration, or an existing `ConfigMap` with one.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, KeyToPath};

use super::{FeatureStep, env, mounted, object_meta};
use crate::{
    driver::{DriverConf, Object, SparkPod},
    refusal::Refusal,
};

const KEY: &str = "spark.kubernetes.hadoop.configMapName";
const VOLUME: &str = "hadoop-properties";
const MOUNT_PATH: &str = "/opt/hadoop/conf";

pub(super) struct HadoopConf<'a> {
    conf: &'a DriverConf<'a>,
    source: Source<'a>,
}

enum Source<'a> {
    None,
    /// The files of the submitter's `HADOOP_CONF_DIR`.
    Files(BTreeMap<String, String>),
    /// The name of an existing `ConfigMap`.
    Existing(&'a str),
}

impl<'a> HadoopConf<'a> {
    pub(super) fn new(conf: &'a DriverConf<'a>) -> Result<Self, Refusal> {
        let source = match (&conf.context.submitter.hadoop_conf_dir, conf.get(KEY)) {
            (Some(_), Some(_)) => {
                let reason = "Do not specify both the `HADOOP_CONF_DIR` in your ENV and the ConfigMap as the creation \
                              of an additional ConfigMap, when one is already specified is extraneous. (The gateway has \
                              its own Hadoop configuration: leave the property out.)";
                return Err(Refusal::property(KEY, reason));
            }
            (Some(files), None) => {
                let text = |(name, content)| match conf.text(content) {
                    Some(text) => Ok((String::clone(name), text.into_owned())),
                    None => Err(Refusal::field(
                        "HADOOP_CONF_DIR",
                        format!(
                            "The gateway's file `{name}` is not UTF-8 text, so it can't be put into a ConfigMap. Ask the \
                             operator of the gateway to remove it from the Hadoop configuration."
                        ),
                    )),
                };
                Source::Files(files.iter().map(text).collect::<Result<_, _>>()?)
            }
            (None, Some(name)) => Source::Existing(name),
            (None, None) => Source::None,
        };
        Ok(Self { conf, source })
    }

    /// Returns the `ConfigMap`'s name and the entries that are mounted. Of an existing map, all entries are mounted.
    fn config_map(&self) -> Option<(String, Option<Vec<KeyToPath>>)> {
        match &self.source {
            Source::None => None,
            Source::Existing(name) => Some(((*name).to_owned(), None)),
            Source::Files(files) => {
                let items: Vec<_> = files.keys().map(|name| mounted::item(name, name)).collect();
                Some((self.own_name(), Some(items).filter(|items| !items.is_empty())))
            }
        }
    }

    fn own_name(&self) -> String {
        format!("{}-hadoop-config", self.conf.names.resource_prefix)
    }
}

impl FeatureStep for HadoopConf<'_> {
    fn configure_pod(&self, pod: &mut SparkPod) {
        let Some((name, items)) = self.config_map() else { return };
        pod.mount(mounted::config_map(VOLUME, name, items), mounted::mount(VOLUME, MOUNT_PATH));
        pod.add_env(env("HADOOP_CONF_DIR", MOUNT_PATH));
    }

    /// Makes executors mount the same `ConfigMap`.
    fn additional_properties(&self) -> Vec<(String, String)> {
        let property = |(name, _)| ("spark.kubernetes.executor.hadoopConfigMapName".to_owned(), name);
        self.config_map().map(property).into_iter().collect()
    }

    fn additional_resources(&self) -> Vec<Object> {
        let Source::Files(files) = &self.source else { return Vec::new() };
        vec![Object::ConfigMap(ConfigMap {
            metadata: object_meta(self.conf, &self.own_name()),
            data: Some(files.clone()).filter(|files| !files.is_empty()),
            immutable: Some(true),
            ..Default::default()
        })]
    }
}
