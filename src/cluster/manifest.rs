//! The objects of one attempt as they are sent to the API server, with our marks on the pod.

mod attempt;

use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::labels;
use crate::{
    spark::{DriverObjects, Object},
    submission::SubmissionId,
};

/// All objects of an attempt, in the order of their creation. Written once and kept, so that whoever launches the attempt
/// creates the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// What the pod can't be scheduled without.
    pub before: Vec<Value>,
    pub pod: Value,
    /// What the pod owns.
    pub beside: Vec<Value>,
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
}

impl Manifest {
    /// # Errors
    /// An object that isn't JSON; there is none.
    pub fn new(driver: &DriverObjects, marks: &Marks) -> serde_json::Result<Self> {
        let values = |objects: &[Object]| objects.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>();
        let mut before = values(&driver.pre_resources)?;
        for object in &mut before {
            object["metadata"]["labels"][labels::SUBMISSION_ID] = marks.submission.to_string().into();
        }
        let pod = serde_json::to_value(marked(driver.pod.clone(), marks))?;
        Ok(Self { before, pod, beside: values(&driver.resources)? })
    }
}

fn marked(mut pod: Pod, marks: &Marks) -> Pod {
    // Spark appends the driver's container after all others.
    let driver = pod.spec.as_ref().and_then(|spec| spec.containers.last()).map(|container| container.name.clone());
    let metadata = &mut pod.metadata;
    let labels = metadata.labels.get_or_insert_default();
    labels.extend(marks.labels().map(|(label, value)| (label.to_owned(), value)));
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(labels::DRIVER_CONTAINER.to_owned(), driver.unwrap_or_default());
    if marks.finalizer {
        metadata.finalizers.get_or_insert_default().push(labels::FINALIZER.to_owned());
    }
    pod
}
