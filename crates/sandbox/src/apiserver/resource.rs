//! The table of resources that are served, with all differences between kinds that a generic verb needs.

use k8s_openapi::api::{core::v1 as core, networking::v1 as networking};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The rule for the names of a resource's objects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NameRule {
    /// RFC 1123 subdomain: labels joined by dots, at most 253 characters.
    Subdomain,
    /// RFC 1123 label: at most 63 characters, no dots.
    Label,
}

/// One kind of object and the way it is served.
#[derive(Debug)]
pub(super) struct Resource {
    /// API group; empty for the core group.
    pub(super) group: &'static str,
    pub(super) plural: &'static str,
    pub(super) singular: &'static str,
    pub(super) kind: &'static str,
    pub(super) short: &'static [&'static str],
    pub(super) namespaced: bool,
    /// Whether there is a `status` subresource, so that the main resource can't change the status.
    pub(super) status: bool,
    pub(super) name_rule: NameRule,
    /// Whether a successful delete returns the object (otherwise a `Status`).
    pub(super) returns_deleted: bool,
    /// Field selectors beyond `metadata.name` and `metadata.namespace`.
    pub(super) fields: &'static [&'static str],
    /// Whether `metadata.generation` counts the changes of the spec.
    pub(super) generation: bool,
    /// Checks the types of all fields and drops the unknown ones.
    pub(super) decode: fn(Value) -> Result<Value, serde_json::Error>,
}

impl Resource {
    /// Returns `v1` or `networking.k8s.io/v1`: every group is served only in version `v1`.
    pub(super) fn api_version(&self) -> String {
        if self.group.is_empty() { "v1".into() } else { format!("{}/v1", self.group) }
    }

    /// Returns the name with the group: `pods`, `networkpolicies.networking.k8s.io`.
    pub(super) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.into() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// Returns the resource with a group and a plural name.
pub(super) fn find(group: &str, plural: &str) -> Option<&'static Resource> {
    RESOURCES.iter().copied().find(|resource| resource.group == group && resource.plural == plural)
}

/// Returns the resource of a kind in an owner reference.
pub(super) fn find_kind(api_version: &str, kind: &str) -> Option<&'static Resource> {
    RESOURCES.iter().copied().find(|resource| resource.kind == kind && resource.api_version() == api_version)
}

fn typed<K: DeserializeOwned + Serialize>(value: Value) -> Result<Value, serde_json::Error> {
    serde_json::to_value(serde_json::from_value::<K>(value)?)
}

const CORE: Resource = Resource {
    group: "",
    plural: "",
    singular: "",
    kind: "",
    short: &[],
    namespaced: true,
    status: false,
    name_rule: NameRule::Subdomain,
    returns_deleted: false,
    fields: &[],
    generation: false,
    decode: Ok,
};

pub(super) static NAMESPACES: Resource = Resource {
    plural: "namespaces",
    singular: "namespace",
    kind: "Namespace",
    short: &["ns"],
    namespaced: false,
    status: true,
    name_rule: NameRule::Label,
    returns_deleted: true,
    fields: &["status.phase"],
    decode: typed::<core::Namespace>,
    ..CORE
};

pub(super) static NODES: Resource = Resource {
    plural: "nodes",
    singular: "node",
    kind: "Node",
    short: &["no"],
    namespaced: false,
    status: true,
    fields: &["spec.unschedulable"],
    decode: typed::<core::Node>,
    ..CORE
};

pub(super) static PODS: Resource = Resource {
    plural: "pods",
    singular: "pod",
    kind: "Pod",
    short: &["po"],
    status: true,
    returns_deleted: true,
    fields: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ],
    generation: true,
    decode: typed::<core::Pod>,
    ..CORE
};

/// All resources that are served, in the order of discovery.
pub(super) static RESOURCES: [&Resource; 10] = [
    &Resource {
        plural: "configmaps",
        singular: "configmap",
        kind: "ConfigMap",
        short: &["cm"],
        decode: typed::<core::ConfigMap>,
        ..CORE
    },
    &Resource {
        plural: "events",
        singular: "event",
        kind: "Event",
        short: &["ev"],
        fields: &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "reason",
            "type",
        ],
        decode: typed::<core::Event>,
        ..CORE
    },
    &NAMESPACES,
    &NODES,
    &Resource {
        plural: "persistentvolumeclaims",
        singular: "persistentvolumeclaim",
        kind: "PersistentVolumeClaim",
        short: &["pvc"],
        status: true,
        returns_deleted: true,
        decode: typed::<core::PersistentVolumeClaim>,
        ..CORE
    },
    &PODS,
    &Resource {
        plural: "secrets",
        singular: "secret",
        kind: "Secret",
        fields: &["type"],
        decode: typed::<core::Secret>,
        ..CORE
    },
    &Resource {
        plural: "serviceaccounts",
        singular: "serviceaccount",
        kind: "ServiceAccount",
        short: &["sa"],
        returns_deleted: true,
        decode: typed::<core::ServiceAccount>,
        ..CORE
    },
    &Resource {
        plural: "services",
        singular: "service",
        kind: "Service",
        short: &["svc"],
        status: true,
        name_rule: NameRule::Label,
        returns_deleted: true,
        fields: &["spec.clusterIP", "spec.type"],
        decode: typed::<core::Service>,
        ..CORE
    },
    &Resource {
        group: "networking.k8s.io",
        plural: "networkpolicies",
        singular: "networkpolicy",
        kind: "NetworkPolicy",
        short: &["netpol"],
        generation: true,
        decode: typed::<networking::NetworkPolicy>,
        ..CORE
    },
];
