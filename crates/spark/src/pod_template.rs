//! The driver's pod template, from which the feature steps start (`KubernetesUtils.loadPodFromTemplate`).

mod fault;
mod reader;
mod restarts;

use k8s_openapi::api::core::v1::{Container, Pod};
use serde::Deserialize;
use serde_json::Value;

use super::{
    driver::{DriverConf, SparkPod},
    refusal::Refusal,
    version::SparkVersion,
    yaml,
};
use reader::Reader;

/// The field of the request for an inline template.
const FIELD: &str = "driverPodTemplate";
const KEY: &str = "spark.kubernetes.driver.podTemplateFile";
const INSTEAD: &str = "send the template itself as driverPodTemplate";
/// Spark's message for every error in a template.
const SENTENCE: &str = "Could not load pod from template file.";

/// Returns the pod of the template, or an empty one if there is no template.
///
/// # Errors
/// A [`Refusal`] for a template that Spark couldn't load, and, unlike in Spark, for one with unknown fields (the API server
/// would drop them), without any container, or with a field by which the driver's container would be restarted.
pub(super) fn load(conf: &DriverConf<'_>) -> Result<SparkPod, Refusal> {
    let Some((field, template)) = template(conf)? else { return Ok(SparkPod::default()) };
    let refused = |reason| Refusal::field(&field, format!("{SENTENCE} {reason}"));
    let mut pod = pod(template, conf.version).map_err(refused)?;
    let containers = &mut pod.spec.get_or_insert_default().containers;
    let chosen = drivers_container(containers, conf.get("spark.kubernetes.driver.podTemplateContainerName"));
    restarts::check(&pod, chosen).map_err(refused)?;
    Ok(take_container(pod, chosen))
}

/// Returns the template's values, with the field of the request that they come from.
fn template(conf: &DriverConf<'_>) -> Result<Option<(String, Value)>, Refusal> {
    let (field, read) = match &conf.app.driver_pod_template {
        Some(Value::String(text)) => (FIELD.to_owned(), yaml::parse(text)),
        Some(template) => (FIELD.to_owned(), yaml::bounded(template)),
        None => match conf.submitter_file(KEY, INSTEAD) {
            Ok(None) => return Ok(None),
            Ok(Some((_, content))) => (Refusal::property_field(KEY), yaml::parse_bytes(&content.0)),
            Err(refusal) => return Err(Refusal { reason: format!("{SENTENCE} {}", refusal.reason), ..refusal }),
        },
    };
    match read {
        Ok(template) => Ok(Some((field, template))),
        Err(error) => Err(Refusal::field(field, format!("{SENTENCE} Reading it failed: {error}."))),
    }
}

/// Converts a template's values to a pod. As in Spark, its `apiVersion` is ignored; its kind may be left out.
pub(super) fn pod(mut template: Value, version: SparkVersion) -> Result<Pod, String> {
    let Some(fields) = template.as_object_mut() else { return Err(no_map(&template)) };
    fields.remove("apiVersion");
    match fields.remove("kind") {
        None | Some(Value::Null) => {}
        Some(kind) if kind == "Pod" => {}
        Some(kind) => {
            let kind = yaml::shortened(&kind.to_string());
            return Err(format!("Its kind is {kind}, and must be Pod."));
        }
    }
    let pod = Pod::deserialize(Reader::new(&template).of(version)).map_err(|fault| format!("{fault}."))?;
    match &pod.spec {
        None => Err("It has no `spec`.".to_owned()),
        Some(spec) if spec.containers.is_empty() => {
            Err("It has no container. It needs at least one, if only with a name, which becomes Spark's.".to_owned())
        }
        Some(_) => Ok(pod),
    }
}

/// Returns the error for a template that is not a map: usually a string that was meant as the name of a file.
pub(super) fn no_map(template: &Value) -> String {
    let template_is = "A template is a map with a `spec`, as for `kubectl create -f`, or the name of a file that the \
                       operator gave";
    match template {
        Value::String(name) => format!("{template_is}. There is no file `{}`.", yaml::shortened(name)),
        _ => format!("{template_is}."),
    }
}

/// Converts a value to one of Kubernetes' types, with the conversions of Spark's parser.
///
/// # Errors
/// The path of a field that doesn't fit, and the reason.
pub(super) fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, String> {
    T::deserialize(Reader::new(value)).map_err(|fault| fault.to_string())
}

/// Returns which container is the driver's: the one with this name, if there is exactly one, or else the first.
fn drivers_container(containers: &[Container], name: Option<&str>) -> usize {
    let named = |container: &Container| name == Some(container.name.as_str());
    match containers.iter().filter(|container| named(container)).count() {
        1 => containers.iter().position(named).unwrap_or(0),
        _ => 0,
    }
}

/// Takes the driver's container out of the pod.
fn take_container(mut pod: Pod, at: usize) -> SparkPod {
    let containers = &mut pod.spec.get_or_insert_default().containers;
    let container = if at < containers.len() { containers.remove(at) } else { Container::default() };
    SparkPod { pod, container }
}

#[cfg(test)]
mod tests;
