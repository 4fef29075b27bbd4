//! The objects of one attempt as they are sent to the API server, with our marks on the pod.

mod attempt;

use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::labels;
use crate::{
    spark::{DriverObjects, Object},
    submission::SubmissionId,
};

/// All objects of an attempt, in the order of their creation. Written once and kept, so that whoever launches the attempt
/// creates the same: each is sent as it was written, and is read by those alone who ask for a `Manifest<Value>`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest<Object = Box<RawValue>> {
    /// What the pod can't be scheduled without.
    pub before: Vec<Object>,
    pub pod: Object,
    /// What the pod owns.
    pub beside: Vec<Object>,
}

/// By what an attempt's objects are known again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marks {
    pub submission: SubmissionId,
    pub attempt: i32,
    pub instance: Uuid,
    /// Whether the pod is held until its outcome is recorded.
    pub finalizer: bool,
}

impl Marks {
    /// The labels that driver and executor pods carry.
    pub fn labels(&self) -> [(&'static str, String); 3] {
        [
            (labels::SUBMISSION_ID, self.submission.to_string()),
            (labels::ATTEMPT, self.attempt.to_string()),
            (labels::INSTANCE, self.instance.to_string()),
        ]
    }

    /// The properties that ask Spark to put them on executor pods.
    pub fn executor_properties(&self) -> [(String, String); 3] {
        self.labels().map(|(label, value)| (format!("spark.kubernetes.executor.label.{label}"), value))
    }

    /// Marks the pod, and what is there before it.
    pub fn put_on(&self, driver: &mut DriverObjects) {
        for object in &mut driver.pre_resources {
            let labels = object.metadata_mut().labels.get_or_insert_default();
            labels.insert(labels::SUBMISSION_ID.to_owned(), self.submission.to_string());
        }
        // Spark appends the driver's container after all others.
        let container = driver.pod.spec.as_ref().and_then(|spec| spec.containers.last());
        let container = container.map(|container| container.name.clone()).unwrap_or_default();
        let metadata = &mut driver.pod.metadata;
        let labels = metadata.labels.get_or_insert_default();
        labels.extend(self.labels().map(|(label, value)| (label.to_owned(), value)));
        metadata.annotations.get_or_insert_default().insert(labels::DRIVER_CONTAINER.to_owned(), container);
        if self.finalizer {
            metadata.finalizers.get_or_insert_default().push(labels::FINALIZER.to_owned());
        }
    }
}

impl Manifest {
    /// The text of the manifest that a marked driver's objects make, to be kept.
    ///
    /// # Errors
    /// An object that isn't JSON; there is none.
    pub fn text_of(driver: &DriverObjects) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct Borrowed<'a> {
            before: &'a [Object],
            pod: &'a Pod,
            beside: &'a [Object],
        }
        let DriverObjects { pre_resources, pod, resources, .. } = driver;
        serde_json::to_string(&Borrowed { before: pre_resources, pod, beside: resources })
    }
}
