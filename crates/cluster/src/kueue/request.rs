//! A `Workload` as the gateway creates it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sparkgate_submission::{Installation, SubmissionId};

use super::api::{ApiVersion, DRIVER, EXECUTOR, GROUP};
use crate::labels;

/// The fields of a pod's spec by which Kueue computes its requests and selects flavors. The others, such as variables, may be secret,
/// and tenants may read `Workload`s.
const SPEC: [&str; 9] = [
    "affinity",
    "nodeSelector",
    "overhead",
    "priorityClassName",
    "resources",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "tolerations",
];
const CONTAINER: [&str; 3] = ["name", "resources", "restartPolicy"];

/// What an attempt asks of a queue.
#[derive(Debug, Clone)]
pub struct WorkloadRequest<'a> {
    pub id: &'a SubmissionId,
    pub attempt: i32,
    pub namespace: &'a str,
    /// The name of the driver pod, which is unique among the attempts of the namespace, and is that of the `Workload`, too.
    pub name: &'a str,
    /// The name of a `LocalQueue` of the namespace.
    pub local_queue: &'a str,
    /// A `WorkloadPriorityClass` and its value.
    pub priority_class: Option<(&'a str, i32)>,
    /// The driver's pod.
    pub driver: &'a Value,
    /// `None` if the driver creates none.
    pub executors: Option<Executors>,
}

/// The executors of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Executors {
    /// The pod of each of them.
    pub pod: Value,
    pub count: u32,
    /// The number without which the attempt isn't admitted. With fewer than `count`, Kueue may admit it with any number between.
    pub min_count: Option<u32>,
}

impl WorkloadRequest<'_> {
    /// Returns the object.
    pub(super) fn object(&self, version: ApiVersion, installation: &Installation) -> Value {
        let labels: BTreeMap<_, _> = labels::of(self.id, self.attempt, installation).into();
        let mut spec = json!({ "queueName": self.local_queue, "podSets": self.pod_sets() });
        if let Some((class, priority)) = self.priority_class {
            spec["priority"] = priority.into();
            match version {
                ApiVersion::V1Beta1 => {
                    spec["priorityClassName"] = class.into();
                    spec["priorityClassSource"] = "kueue.x-k8s.io/workloadpriorityclass".into();
                }
                ApiVersion::V1Beta2 => {
                    spec["priorityClassRef"] =
                        json!({ "group": GROUP, "kind": "WorkloadPriorityClass", "name": class });
                }
            }
        }
        json!({
            "apiVersion": format!("{GROUP}/{}", version.name()),
            "kind": "Workload",
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "labels": labels,
                "annotations": { labels::IDENTITY: self.identity(installation) }
            },
            "spec": spec
        })
    }

    /// Returns the identity of the object.
    pub(super) fn identity(&self, installation: &Installation) -> String {
        installation.identity(self.id, self.attempt, self.namespace, &signed_name(self.name))
    }

    fn pod_sets(&self) -> Vec<Value> {
        let mut sets = vec![json!({ "name": DRIVER, "count": 1, "template": template(self.driver) })];
        if let Some(Executors { pod, count, min_count }) = &self.executors {
            let mut set = json!({ "name": EXECUTOR, "count": count, "template": template(pod) });
            if let Some(least) = min_count.filter(|least| least < count) {
                set["minCount"] = least.into();
            }
            sets.push(set);
        }
        sets
    }
}

/// Returns the name over which the identity of a `Workload` is signed. No pod can have it, so that the identity of a `Workload`, which
/// exists before the driver, is of no use for a pod.
pub(super) fn signed_name(name: &str) -> String {
    format!("workload.{name}/")
}

fn template(pod: &Value) -> Value {
    let mut spec = picked(&pod["spec"], &SPEC);
    for field in ["containers", "initContainers"] {
        if let Some(containers) = pod["spec"][field].as_array() {
            let containers = containers.iter().map(|container| Value::Object(picked(container, &CONTAINER)));
            spec.insert(field.to_owned(), containers.collect());
        }
    }
    json!({ "spec": spec })
}

fn picked(object: &Value, fields: &[&str]) -> Map<String, Value> {
    let present = fields.iter().filter_map(|field| Some(((*field).to_owned(), object.get(field)?.clone())));
    present.filter(|(_, value)| !value.is_null()).collect()
}
