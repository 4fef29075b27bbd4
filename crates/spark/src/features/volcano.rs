//! `VolcanoFeatureStep` (4.2+): the driver's `PodGroup` for Volcano, the batch scheduler. The scheduler itself is selected with
//! another property (`spark.kubernetes.scheduler.name`).

mod template;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

use super::{FeatureStep, object_meta};
use crate::{
    driver::{DriverConf, Object, PodGroup, SparkPod},
    refusal::Refusal,
    yaml,
};

const ANNOTATION: &str = "scheduling.k8s.io/group-name";
const TEMPLATE_FILE: &str = "spark.kubernetes.scheduler.volcano.podGroupTemplateFile";
const TEMPLATE_JSON: &str = "spark.kubernetes.scheduler.volcano.podGroupTemplateJson";

pub(super) struct Volcano {
    name: String,
    group: PodGroup,
}

impl Volcano {
    pub(super) fn new(conf: &DriverConf<'_>) -> Result<Self, Refusal> {
        let name = format!("{}-podgroup", conf.names.app_id);
        let mut group = match template(conf)? {
            Some((key, template)) => template::pod_group(template).map_err(|reason| Refusal::property(key, reason))?,
            None => PodGroup::new(ObjectMeta::default(), Map::new()),
        };
        let own = object_meta(conf, &name);
        group.metadata.name = own.name;
        group.metadata.namespace = own.namespace;
        Ok(Self { name, group })
    }
}

impl FeatureStep for Volcano {
    fn configure_pod(&self, pod: &mut SparkPod) {
        let annotations = pod.pod.metadata.annotations.get_or_insert_default();
        annotations.insert(ANNOTATION.to_owned(), self.name.clone());
    }

    fn additional_pre_resources(&self) -> Vec<Object> {
        vec![Object::PodGroup(self.group.clone())]
    }
}

/// Returns the template and the property that it comes from; a file takes precedence. Both are parsed as YAML or JSON.
fn template(conf: &DriverConf<'_>) -> Result<Option<(&'static str, Value)>, Refusal> {
    let file = conf.submitter_text(TEMPLATE_FILE, &format!("send the template itself as {TEMPLATE_JSON}"))?;
    let (key, text) = match (file, conf.get(TEMPLATE_JSON)) {
        (Some((_, text)), _) => (TEMPLATE_FILE, text),
        (None, Some(text)) => (TEMPLATE_JSON, text.into()),
        (None, None) => return Ok(None),
    };
    let template = yaml::parse(&text)
        .map_err(|error| Refusal::property(key, format!("The template of the PodGroup can't be read: {error}.")))?;
    Ok(Some((key, template)))
}
