//! Builds the driver's objects from a request by folding over the feature steps (Spark's `KubernetesDriverBuilder` and
//! `Client`).

mod config_map;

use std::collections::BTreeMap;

use super::{
    context::SubmitContext,
    driver::{DriverConf, DriverObjects},
    features,
    named_request::NamedRequest,
    pod_template,
    refusal::Refusal,
    submit, volumes,
};
use config_map::MainConfigMap;

/// Builds the objects that `spark-submit --master k8s:// --deploy-mode cluster` would create.
///
/// The same request and context give the same objects. Every object carries its namespace; none carries an owner
/// reference, since the pod's uid is not known before it exists.
///
/// # Errors
/// A [`Refusal`] where Spark would refuse, or where the request asks for a feature step that isn't available.
pub fn build_driver(request: &NamedRequest, context: &SubmitContext<'_>) -> Result<DriverObjects, Refusal> {
    let application = submit::prepare(request, context)?;
    build(&DriverConf::new(application, context))
}

/// Runs all steps that the configuration leaves in, in Spark's order, then adds the main `ConfigMap`.
fn build(conf: &DriverConf<'_>) -> Result<DriverObjects, Refusal> {
    volumes::check_executors(conf, conf.version)?;
    let mut pod = pod_template::load(conf)?;
    let steps = features::driver_steps(conf)?;
    let mut added = Vec::new();
    let mut pre_resources = Vec::new();
    let mut resources = Vec::new();
    for step in &steps {
        step.configure_pod(&mut pod);
        added.extend(step.additional_properties());
        pre_resources.extend(step.additional_pre_resources());
        resources.extend(step.additional_resources());
    }
    let mut properties: BTreeMap<&str, &str> = conf.iter().collect();
    properties.extend(added.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    let config_map = MainConfigMap::new(conf, &properties)?;
    config_map.mount(&mut pod);
    resources.push(config_map.into_object());
    let namespace = conf.namespace().to_owned();
    Ok(DriverObjects { pod: pod.assemble(&namespace), namespace, pre_resources, resources })
}

#[cfg(test)]
mod tests;
