//! A driver pod with only the fields that decide: a full `Pod` costs 25 times the memory.

use std::borrow::Cow;

use k8s_openapi::{
    NamespaceResourceScope, api::core::v1::ContainerStatus, apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use serde::Deserialize;

#[derive(Debug, Clone, Deserialize)]
pub(super) struct DriverPod {
    #[serde(default)]
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
    pub(super) containers: Vec<Named>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Named {
    pub(super) name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    pub(super) phase: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    #[serde(rename = "podIP")]
    pub(super) pod_ip: Option<String>,
    pub(super) container_statuses: Option<Vec<ContainerStatus>>,
}

impl kube::Resource for DriverPod {
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
