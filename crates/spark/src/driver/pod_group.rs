//! Volcano's `PodGroup`: the only custom resource that Spark itself creates.

use k8s_openapi::{Metadata, NamespaceResourceScope, Resource, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `scheduling.volcano.sh/v1beta1 PodGroup`. Only Volcano interprets its spec, which stays as the template gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodGroup {
    #[serde(default = "api_version")]
    api_version: String,
    #[serde(default = "kind")]
    kind: String,
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: Map<String, Value>,
}

impl PodGroup {
    pub fn new(metadata: ObjectMeta, spec: Map<String, Value>) -> Self {
        Self { api_version: api_version(), kind: kind(), metadata, spec }
    }
}

impl Resource for PodGroup {
    const API_VERSION: &'static str = "scheduling.volcano.sh/v1beta1";
    const GROUP: &'static str = "scheduling.volcano.sh";
    const KIND: &'static str = "PodGroup";
    const VERSION: &'static str = "v1beta1";
    const URL_PATH_SEGMENT: &'static str = "podgroups";
    type Scope = NamespaceResourceScope;
}

impl Metadata for PodGroup {
    type Ty = ObjectMeta;

    fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn api_version() -> String {
    PodGroup::API_VERSION.to_owned()
}

fn kind() -> String {
    PodGroup::KIND.to_owned()
}
