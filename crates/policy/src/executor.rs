//! The executors' pod as the driver will create it from its properties and the executors' template (Spark's
//! `KubernetesExecutorBuilder` and its feature steps). Only what a rule judges is derived.

mod set;
mod size;
mod volumes;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::judged::Judged;

pub use set::{ExecutorCount, ExecutorSet, executors};
pub use size::ExecutorMemory;
pub(crate) use size::{Executors, count, initial_count};
pub(crate) use volumes::ON_DEMAND;

const CONTAINER: &str = "spark-kubernetes-executor";

/// The labels that Spark sets on each executor; it replaces those of a template.
const OWN_LABELS: [&str; 5] =
    ["spark-version", "spark-app-selector", "spark-app-name", "spark-exec-id", "spark-exec-resourceprofile-id"];

/// What the driver will create for each executor.
#[derive(Debug)]
pub(crate) struct ExecutorPod {
    pub(crate) pod: Value,
    /// Claims that the driver creates along with each executor, by the names of their volumes.
    pub(crate) claims: BTreeMap<String, Value>,
    /// Properties that can't be read, with the reason.
    pub(crate) unreadable: Vec<(String, String)>,
}

/// The release of Spark, as the driver's labels show it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SparkRelease<'a> {
    text: Option<&'a str>,
}

impl<'a> SparkRelease<'a> {
    pub(crate) fn from_pod(pod: Option<&'a Value>) -> Self {
        Self { text: pod.and_then(|pod| pod["metadata"]["labels"]["spark-version"].as_str()) }
    }

    /// Returns whether it is this release or a later one. An unknown release is none of them.
    fn is_at_least(self, major: u32, minor: u32) -> bool {
        let mut parts = self.text.unwrap_or_default().split('.').map(|part| part.parse::<u32>().ok());
        match (parts.next().flatten(), parts.next().flatten()) {
            (Some(own), Some(own_minor)) => (own, own_minor) >= (major, minor),
            _ => false,
        }
    }

    /// Returns an image with the placeholder for the release filled in (4.1+).
    fn image(self, image: &str) -> String {
        match self.text {
            Some(release) if self.is_at_least(4, 1) => image.replace("{{SPARK_VERSION}}", release),
            _ => image.to_owned(),
        }
    }
}

impl ExecutorPod {
    pub(crate) fn derive(judged: &Judged<'_>, release: SparkRelease<'_>) -> Self {
        let mut pod = match judged.executor_template {
            Some(Value::Object(template)) => template.clone(),
            _ => Map::new(),
        };
        let mut unreadable = Vec::new();
        let mut container = take_container(&mut pod, judged);
        complete_container(&mut container, judged, release);
        size::complete(&mut container, judged, &mut unreadable);
        complete_metadata(&mut pod, judged);
        let claims = match object(&mut pod, "spec") {
            Some(spec) => {
                append(spec, "containers", vec![Value::Object(container)]);
                complete_spec(spec, judged, &mut unreadable);
                volumes::complete(spec, judged, &mut unreadable)
            }
            None => BTreeMap::new(),
        };
        Self { pod: Value::Object(pod), claims, unreadable }
    }
}

/// Returns a field that is an object, and creates an absent one. `None` for another value: the table of fields refuses it.
fn object<'a>(map: &'a mut Map<String, Value>, field: &str) -> Option<&'a mut Map<String, Value>> {
    let value = map.entry(field).or_insert(Value::Null);
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut()
}

/// Adds elements to a field that is a list, and creates an absent one.
fn append(map: &mut Map<String, Value>, field: &str, elements: Vec<Value>) {
    if elements.is_empty() {
        return;
    }
    let value = map.entry(field).or_insert(Value::Null);
    match value {
        Value::Array(list) => list.extend(elements),
        Value::Null => *value = Value::Array(elements),
        _ => {}
    }
}

/// Sets entries of a field that is a map of strings.
fn extend<'a>(map: &mut Map<String, Value>, field: &str, entries: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let mut entries = entries.into_iter().peekable();
    if entries.peek().is_some()
        && let Some(map) = object(map, field)
    {
        map.extend(entries.map(|(key, value)| (key.to_owned(), Value::from(value))));
    }
}

/// Takes the executor's container out of the template: the one that a property names, or else the first.
fn take_container(pod: &mut Map<String, Value>, judged: &Judged<'_>) -> Map<String, Value> {
    let name = judged.property("spark.kubernetes.executor.podTemplateContainerName");
    let containers = pod.get_mut("spec").and_then(|spec| spec.get_mut("containers")).and_then(Value::as_array_mut);
    let Some(containers) = containers.filter(|containers| !containers.is_empty()) else { return Map::new() };
    let named = |container: &Value| name.is_some() && container["name"].as_str() == name;
    let chosen = match containers.iter().filter(|container| named(container)).count() {
        1 => containers.iter().position(named).unwrap_or(0),
        _ => 0,
    };
    match containers.remove(chosen) {
        Value::Object(container) => container,
        // Left in its place, where the table of fields refuses it.
        other => {
            containers.insert(chosen, other);
            Map::new()
        }
    }
}

/// `BasicExecutorFeatureStep` and `EnvSecretsFeatureStep`: image, environment and privileges.
fn complete_container(container: &mut Map<String, Value>, judged: &Judged<'_>, release: SparkRelease<'_>) {
    if container.get("name").and_then(Value::as_str).is_none_or(str::is_empty) {
        container.insert("name".to_owned(), CONTAINER.into());
    }
    let images = ["spark.kubernetes.executor.container.image", "spark.kubernetes.container.image"];
    if let Some(image) = judged.first(&images) {
        container.insert("image".to_owned(), release.image(image).into());
    }
    let variables = judged.family("spark.executorEnv.");
    let mut env: Vec<Value> = variables.map(|(name, value)| json!({ "name": name, "value": value })).collect();
    for (name, reference) in judged.family("spark.kubernetes.executor.secretKeyRef.") {
        let (secret, key) = reference.split_once(':').unwrap_or((reference, ""));
        env.push(json!({ "name": name, "valueFrom": { "secretKeyRef": { "name": secret, "key": key } } }));
    }
    append(container, "env", env);
    if release.is_at_least(4, 3) {
        let keys = [
            "spark.kubernetes.executor.securityContext.allowPrivilegeEscalation",
            "spark.kubernetes.securityContext.allowPrivilegeEscalation",
        ];
        let allowed =
            keys.iter().find(|key| judged.properties.contains_key(**key)).is_some_and(|key| judged.is_on(key));
        if let Some(context) = object(container, "securityContext") {
            context.insert("allowPrivilegeEscalation".to_owned(), allowed.into());
        }
    }
}

fn complete_metadata(pod: &mut Map<String, Value>, judged: &Judged<'_>) {
    let Some(metadata) = object(pod, "metadata") else { return };
    metadata.remove("name");
    if let Some(labels) = object(metadata, "labels") {
        OWN_LABELS.iter().for_each(|label| drop(labels.remove(*label)));
        labels.insert("spark-role".to_owned(), "executor".into());
    }
    extend(metadata, "labels", judged.family("spark.kubernetes.executor.label."));
    if let Some(label) = judged.property("spark.kubernetes.executor.decommissionLabel") {
        let value = judged.property("spark.kubernetes.executor.decommissionLabelValue").unwrap_or_default();
        extend(metadata, "labels", [(label, value)]);
    }
    extend(metadata, "annotations", judged.family("spark.kubernetes.executor.annotation."));
}

fn complete_spec(spec: &mut Map<String, Value>, judged: &Judged<'_>, unreadable: &mut Vec<(String, String)>) {
    for prefix in ["spark.kubernetes.node.selector.", "spark.kubernetes.executor.node.selector."] {
        extend(spec, "nodeSelector", judged.family(prefix));
    }
    let secrets = judged.list("spark.kubernetes.container.image.pullSecrets");
    append(spec, "imagePullSecrets", secrets.map(|name| json!({ "name": name })).collect());
    let schedulers = ["spark.kubernetes.executor.scheduler.name", "spark.kubernetes.scheduler.name"];
    if let Some(name) = judged.first(&schedulers) {
        spec.insert("schedulerName".to_owned(), name.into());
    }
    // `ExecutorKubernetesCredentialsFeatureStep`: the template's account takes precedence.
    let accounts = [
        "spark.kubernetes.authenticate.executor.serviceAccountName",
        "spark.kubernetes.authenticate.driver.serviceAccountName",
    ];
    if spec.get("serviceAccount").is_none_or(Value::is_null)
        && let Some(name) = judged.first(&accounts)
    {
        spec.insert("serviceAccount".to_owned(), name.into());
        spec.insert("serviceAccountName".to_owned(), name.into());
    }
    let key = "spark.kubernetes.executor.terminationGracePeriodSeconds";
    if let Some(text) = judged.property(key) {
        match size::seconds(text) {
            Some(seconds) => drop(spec.insert("terminationGracePeriodSeconds".to_owned(), seconds.into())),
            None => unreadable.push((key.to_owned(), "it is not a duration, such as 30s".to_owned())),
        }
    }
}
