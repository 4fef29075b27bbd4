//! The version of Kueue's API, and its objects.

use std::time::Duration;

use kube::{
    Api,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use sparkgate_submission::Installation;

use crate::{call::call, cluster::Cluster, error::Error, labels, manifest_object::unreadable};

/// The API group of Kueue.
pub(super) const GROUP: &str = "kueue.x-k8s.io";
/// The versions that this release knows, the newest first.
const VERSIONS: [ApiVersion; 2] = [ApiVersion::V1Beta2, ApiVersion::V1Beta1];
/// The names of the two pod sets.
pub(super) const DRIVER: &str = "driver";
pub(super) const EXECUTOR: &str = "executor";

/// Timeout for reads.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// A version of Kueue's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApiVersion {
    V1Beta1,
    V1Beta2,
}

impl ApiVersion {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V1Beta1 => "v1beta1",
            Self::V1Beta2 => "v1beta2",
        }
    }
}

/// Kueue on a cluster. Cheap to clone.
#[derive(Clone)]
pub struct Kueue {
    pub(super) cluster: Cluster,
    pub(super) version: ApiVersion,
}

impl Cluster {
    /// Returns Kueue, by the newest version of its API that the API server serves and that this release knows; `None` if it serves
    /// none of them.
    ///
    /// # Errors
    /// The API server doesn't answer.
    pub async fn kueue(&self) -> Result<Option<Kueue>, Error> {
        let served = call("listing the APIs", TIMEOUT, self.client.list_api_groups()).await?;
        let versions = served.groups.iter().filter(|served| served.name == GROUP).flat_map(|of| &of.versions);
        let names: Vec<&str> = versions.map(|served| served.version.as_str()).collect();
        let version = VERSIONS.into_iter().find(|version| names.contains(&version.name()));
        Ok(version.map(|version| Kueue { cluster: self.clone(), version }))
    }
}

impl Kueue {
    pub(super) fn resource(&self, kind: &str, plural: &str) -> ApiResource {
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, self.version.name(), kind), plural)
    }

    pub(super) fn workloads(&self, namespace: &str) -> Api<DynamicObject> {
        let resource = self.resource("Workload", "workloads");
        Api::namespaced_with(self.cluster.client.clone(), namespace, &resource)
    }

    pub(super) fn installation(&self) -> Result<&Installation, Error> {
        let none = || unreadable("Workload", &"the cluster is used by no installation");
        self.cluster.installation.as_deref().ok_or_else(none)
    }

    /// Returns the label selector of the `Workload`s of this installation.
    pub(super) fn selector(&self) -> &str {
        debug_assert!(self.cluster.selector.starts_with(labels::INSTANCE));
        &self.cluster.selector
    }
}
