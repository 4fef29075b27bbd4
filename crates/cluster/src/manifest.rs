//! The objects of one attempt as they are sent to the API server, with the labels, annotations and finalizer that mark the pod
//! as ours.

mod attempt;
mod overlay;

pub use overlay::{Overlay, OverlayError, Placement};

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ObjectFieldSelector, Pod};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    labels,
    manifest_object::ManifestObject,
    restarts::{never_restart, without_restarts},
};
use sparkgate_spark::{DriverObjects, Object};
use sparkgate_submission::{Installation, SubmissionId};

/// All objects of an attempt, in the order of their creation. The manifest is written once and stored, so that every replica
/// that launches the attempt creates the same objects. Each object is sent as it was written; only a `Manifest<Value>` parses
/// it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest<Object = Box<RawValue>> {
    /// Objects that the pod can't be scheduled without.
    pub before: Vec<Object>,
    pub pod: Object,
    /// Objects that are created after the pod, which owns them.
    pub beside: Vec<Object>,
    /// What the objects were judged by, for the service. Nothing is created from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Object>,
}

/// Variables of the driver, and the labels that they are read from.
const FENCING: [(&str, &str); 2] =
    [("SPARKGATE_SUBMISSION_ID", labels::SUBMISSION_ID), ("SPARKGATE_ATTEMPT", labels::ATTEMPT)];
/// Spark's properties for labels of executors.
const EXECUTOR_LABEL: &str = "spark.kubernetes.executor.label.";

/// Returns whether a property of a driver is one of [`OwnershipLabels::executor_properties`].
pub fn is_executor_property(key: &str) -> bool {
    key.strip_prefix(EXECUTOR_LABEL).is_some_and(|label| labels::ALL.contains(&label))
}

/// What identifies an attempt's objects.
#[derive(Debug, Clone)]
pub struct OwnershipLabels<'a> {
    pub submission: SubmissionId,
    pub attempt: i32,
    pub installation: &'a Installation,
    /// Whether a finalizer holds the pod until its outcome is recorded.
    pub finalizer: bool,
}

impl OwnershipLabels<'_> {
    /// Returns the labels that driver and executor pods carry.
    pub fn labels(&self) -> [(&'static str, String); 3] {
        labels::of(&self.submission, self.attempt, self.installation)
    }

    /// Returns the properties that make Spark put these labels on executor pods.
    pub fn executor_properties(&self) -> [(String, String); 3] {
        self.labels().map(|(label, value)| (format!("{EXECUTOR_LABEL}{label}"), value))
    }

    /// Marks the pod, and the objects that are created before it.
    ///
    /// Neither a pod template nor an excluded feature step can change what the guarantees rest on: the pod has the name that
    /// its row holds, since a repeated create must find the first one's pod; the pod is labelled as a driver; and nothing in it
    /// makes the kubelet start its driver again.
    pub fn put_on(&self, driver: &mut DriverObjects, name: &str) {
        for object in &mut driver.pre_resources {
            let labels = object.metadata_mut().labels.get_or_insert_default();
            labels.insert(labels::SUBMISSION_ID.to_owned(), self.submission.to_string());
        }
        // Spark appends the driver's container after all others.
        let container = driver.pod.spec.as_mut().and_then(|spec| spec.containers.last_mut());
        let container = container.map(|container| {
            fence(container.env.get_or_insert_default());
            container.name.clone()
        });
        let container = container.unwrap_or_default();
        never_restart(driver.pod.spec.get_or_insert_default(), &container);
        let metadata = &mut driver.pod.metadata;
        metadata.name = Some(name.to_owned());
        metadata.generate_name = None;
        metadata.namespace = Some(driver.namespace.clone());
        let labels = metadata.labels.get_or_insert_default();
        labels.insert(labels::ROLE.to_owned(), labels::DRIVER.to_owned());
        labels.extend(self.labels().map(|(label, value)| (label.to_owned(), value)));
        let identity = self.installation.identity(&self.submission, self.attempt, &driver.namespace, name);
        let annotations = metadata.annotations.get_or_insert_default();
        annotations.insert(labels::DRIVER_CONTAINER.to_owned(), container);
        annotations.insert(labels::IDENTITY.to_owned(), identity);
        if self.finalizer {
            metadata.finalizers.get_or_insert_default().push(labels::FINALIZER.to_owned());
        }
    }
}

/// Adds the variables by which an application can tell a write of this attempt from those of others. They are read from the labels of the
/// pod, so they are those of a later attempt, too.
fn fence(env: &mut Vec<EnvVar>) {
    for (name, label) in FENCING {
        env.retain(|variable| variable.name != name);
        let field = ObjectFieldSelector {
            api_version: Some("v1".to_owned()),
            field_path: format!("metadata.labels['{label}']"),
        };
        let source = EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() };
        env.push(EnvVar { name: name.to_owned(), value: None, value_from: Some(source) });
    }
}

impl Manifest {
    /// Returns whether the pod is created with an identity: the previous release rendered pods without one.
    pub fn is_signed(&self) -> bool {
        self.pod.get().contains(labels::IDENTITY)
    }

    /// Returns whether it is that of an attempt whose objects aren't known.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.beside.is_empty()
    }

    /// Returns the name of the driver's container, as the pod's annotation notes it.
    pub fn driver_container(&self) -> Option<String> {
        let (_, _, metadata) = ManifestObject::with_members("", &self.pod).ok()?;
        let annotations: BTreeMap<String, String> = serde_json::from_str(metadata.get("annotations")?.get()).ok()?;
        annotations.get(labels::DRIVER_CONTAINER).cloned()
    }

    /// Returns whether our finalizer is on the pod.
    pub fn is_held(&self) -> bool {
        self.pod.get().contains(labels::FINALIZER)
    }

    /// Reads a stored manifest, without whatever makes a kubelet start the driver again after an end: a release before this one may
    /// have stored it.
    ///
    /// # Errors
    /// The text isn't a manifest, which doesn't happen: it was written by a gateway.
    pub fn read(text: &str) -> serde_json::Result<Self> {
        let mut manifest: Self = serde_json::from_str(text)?;
        if let Some(pod) = without_restarts(manifest.pod.get())? {
            manifest.pod = RawValue::from_string(pod)?;
        }
        Ok(manifest)
    }

    /// Parses the objects, in the order of their creation, as they were before [`OwnershipLabels::put_on`] marked them.
    ///
    /// # Errors
    /// An object isn't JSON, which doesn't happen: the manifest was written by a gateway.
    pub fn unmarked(&self) -> serde_json::Result<Vec<Value>> {
        let objects = self.before.iter().chain([&self.pod]).chain(&self.beside);
        let mut objects: Vec<Value> =
            objects.map(|object| serde_json::from_str(object.get())).collect::<Result<_, _>>()?;
        for metadata in objects.iter_mut().filter_map(|object| object.get_mut("metadata")?.as_object_mut()) {
            remove_marks(metadata);
        }
        let containers = objects.iter_mut().filter_map(|object| object.pointer_mut("/spec/containers")?.as_array_mut());
        for variables in containers.flatten().filter_map(|container| container.get_mut("env")?.as_array_mut()) {
            variables.retain(|variable| FENCING.iter().all(|(name, _)| variable["name"] != *name));
        }
        Ok(objects)
    }

    /// Serializes a marked driver's objects as a manifest, to be stored, with what they were judged by.
    ///
    /// # Errors
    /// An object can't be written as JSON, which doesn't happen.
    pub fn text_of(driver: &DriverObjects, judged: Option<&impl Serialize>) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct Borrowed<'a, Judged> {
            before: &'a [Object],
            pod: &'a Pod,
            beside: &'a [Object],
            #[serde(skip_serializing_if = "Option::is_none")]
            judged: Option<&'a Judged>,
        }
        let DriverObjects { pre_resources, pod, resources, .. } = driver;
        serde_json::to_string(&Borrowed { before: pre_resources, pod, beside: resources, judged })
    }
}

/// Removes our labels, annotations and finalizer, and a list of them that is empty then.
fn remove_marks(metadata: &mut Map<String, Value>) {
    for key in ["labels", "annotations"] {
        if let Some(values) = metadata.get_mut(key).and_then(Value::as_object_mut) {
            values
                .retain(|key, _| !labels::ALL.contains(&key.as_str()) && !labels::ANNOTATIONS.contains(&key.as_str()));
        }
    }
    if let Some(finalizers) = metadata.get_mut("finalizers").and_then(Value::as_array_mut) {
        finalizers.retain(|finalizer| finalizer != labels::FINALIZER);
    }
    for key in ["labels", "annotations", "finalizers"] {
        let is_empty = metadata.get(key).is_some_and(|value| *value == json!({}) || *value == json!([]));
        if is_empty {
            metadata.remove(key);
        }
    }
}
