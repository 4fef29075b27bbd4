//! A pod with only the fields that are used: a full `Pod` costs 25 times the memory, and most of its text is never needed.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use chrono::{DateTime, Utc};
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::ContainerState,
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference, Time},
};
use serde::{Deserialize, Deserializer, de};

use sparkgate_spark::Quantity;

#[derive(Debug, Clone, Deserialize)]
pub(super) struct SlimPod {
    #[serde(default, deserialize_with = "slim_meta")]
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: Spec,
    #[serde(default)]
    pub(super) status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub(super) node_name: Option<String>,
    /// What keeps the scheduler from looking at the pod.
    pub(super) scheduling_gates: Vec<Gate>,
    pub(super) containers: Vec<Container>,
    pub(super) init_containers: Vec<Container>,
    /// Of the whole pod, which count instead of those of its containers.
    pub(super) resources: Resources,
    /// Of the pod's runtime class.
    pub(super) overhead: Amounts,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Gate {
    pub(super) name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) resources: Resources,
    /// A sidecar, if it is an init container.
    #[serde(rename = "restartPolicy", deserialize_with = "is_always")]
    pub(super) is_restarted: bool,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Resources {
    pub(super) requests: Amounts,
}

/// Amounts of the two resources whose use is counted; 0 if they aren't given.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct Amounts {
    /// In thousandths of a core.
    #[serde(deserialize_with = "millicores")]
    pub(super) cpu: i64,
    /// In bytes.
    #[serde(deserialize_with = "bytes")]
    pub(super) memory: i64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    pub(super) phase: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    #[serde(rename = "podIP")]
    pub(super) pod_ip: Option<String>,
    pub(super) start_time: Option<Time>,
    pub(super) conditions: Option<Vec<Condition>>,
    pub(super) container_statuses: Option<Vec<ContainerStatus>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub(super) type_: String,
    pub(super) status: String,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
}

impl Status {
    /// Returns the scheduler's condition for a pod that fits on no node.
    pub(super) fn unscheduled(&self) -> Option<&Condition> {
        self.conditions.iter().flatten().find(|one| one.type_ == "PodScheduled" && one.status == "False")
    }

    /// Returns why the cluster itself ends the pod, as reason and message: those of the kubelet, or those of the component that
    /// preempts the pod, drains its node or finds the node missing (the condition `DisruptionTarget` of Kubernetes), or that takes
    /// its quota back (`TerminationTarget` of Kueue, unless a client deleted the workload).
    pub(super) fn disruption(&self) -> (Option<String>, Option<String>) {
        let disrupted = |one: &&Condition| match one.type_.as_str() {
            "DisruptionTarget" => one.status == "True",
            "TerminationTarget" => one.status == "True" && one.reason.as_deref() != Some("WorkloadDeleted"),
            _ => false,
        };
        let condition = self.conditions.iter().flatten().find(disrupted);
        let of = |own: &Option<String>, theirs: fn(&Condition) -> &Option<String>| {
            own.clone().or_else(|| theirs(condition?).clone())
        };
        (of(&self.reason, |one| &one.reason), of(&self.message, |one| &one.message))
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ContainerStatus {
    pub(super) name: String,
    pub(super) state: Option<ContainerState>,
}

fn millicores<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Ok(quantity(deserializer)?.map_or(0, Quantity::millis).max(0))
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Ok(quantity(deserializer)?.map_or(0, Quantity::units).max(0))
}

fn is_always<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(Cow::<'de, str>::deserialize(deserializer)? == "Always")
}

/// Reads a quantity without a text of its own. One that can't be read counts as absent, and must not stop a watch.
fn quantity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Quantity>, D::Error> {
    struct OfQuantity;

    impl de::Visitor<'_> for OfQuantity {
        type Value = Option<Quantity>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a quantity")
        }

        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Quantity::parse(text))
        }

        fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
            Ok(Quantity::parse(&number.to_string()))
        }

        fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
            Ok(Quantity::parse(&number.to_string()))
        }
    }

    deserializer.deserialize_any(OfQuantity)
}

/// Reads the metadata that is used and skips the rest, above all the managed fields.
fn slim_meta<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Slim {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        labels: Option<BTreeMap<String, String>>,
        annotations: Option<BTreeMap<String, String>>,
        finalizers: Option<Vec<String>>,
        creation_timestamp: Option<Time>,
        deletion_timestamp: Option<Time>,
        deletion_grace_period_seconds: Option<i64>,
        #[serde(default)]
        owner_references: Vec<Owner>,
    }
    #[derive(Deserialize)]
    struct Owner {
        kind: String,
        uid: String,
    }
    let owner = |owner: Owner| OwnerReference { kind: owner.kind, uid: owner.uid, ..OwnerReference::default() };
    Slim::deserialize(deserializer).map(|slim| ObjectMeta {
        name: slim.name,
        namespace: slim.namespace,
        uid: slim.uid,
        resource_version: slim.resource_version,
        labels: slim.labels,
        annotations: slim.annotations,
        finalizers: slim.finalizers,
        creation_timestamp: slim.creation_timestamp,
        deletion_timestamp: slim.deletion_timestamp,
        deletion_grace_period_seconds: slim.deletion_grace_period_seconds,
        owner_references: Some(slim.owner_references.into_iter().map(owner).collect()),
        ..ObjectMeta::default()
    })
}

/// Converts a time: Kubernetes' types use jiff, ours chrono.
pub(super) fn time(time: &Time) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(time.0.as_second(), u32::try_from(time.0.subsec_nanosecond()).ok()?)
}

impl SlimPod {
    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.metadata.labels.as_ref()?.get(key).map(String::as_str)
    }

    pub(super) fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

impl kube::Resource for SlimPod {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Pod".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "pods".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
