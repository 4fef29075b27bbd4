//! The policy as an operator writes it: the section `policy` of a tenant.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The policy of a tenant. Each field may be left out and has a default. Where a field is a list of patterns, leaving it out
/// permits any name, unless its default says otherwise, and an empty list permits none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PolicyDocument {
    /// The level of Kubernetes' Pod Security Standards. Default: `baseline`.
    pub pod_security: PodSecurity,
    /// Images of all containers and of image volumes. A pattern without a tag matches each tag and digest. Default: any.
    pub images: Option<Vec<String>>,
    /// Whether a request may bring its own credentials for the Kubernetes API. Default: false.
    pub credentials: bool,
    /// Tokens of service accounts. Default: mounted automatically, and only for the API server.
    pub service_account_tokens: ServiceAccountTokens,
    /// Types of volumes. Default: [`DEFAULT_VOLUMES`].
    pub volumes: Option<Vec<String>>,
    /// Sources of projected volumes. Default: [`DEFAULT_PROJECTED_SOURCES`].
    pub projected_sources: Option<Vec<String>>,
    /// Directories of the node below which `hostPath` volumes may be, where `volumes` permits these. Default: none.
    pub host_paths: Vec<String>,
    /// Existing `PersistentVolumeClaim`s. Default: any.
    pub claims: Option<Vec<String>>,
    /// Drivers of CSI and flex volumes. Default: any.
    pub csi_drivers: Option<Vec<String>>,
    /// Servers of NFS volumes. Default: any.
    pub nfs_servers: Option<Vec<String>>,
    /// Existing Secrets. Default: any.
    pub secrets: Option<Vec<String>>,
    /// Existing `ConfigMap`s. Default: any.
    pub config_maps: Option<Vec<String>>,
    /// Labels of nodes that may be selected, as `key` or `key=value`. Default: any.
    pub node_selectors: Option<Vec<String>>,
    /// Keys of taints that may be tolerated. Default: any, but not all taints at once, for which `*` must be in the list.
    pub tolerations: Option<Vec<String>>,
    /// Priority classes. Default: any but `system-*`.
    pub priority_classes: Option<Vec<String>>,
    /// Whether a pod may ask to preempt others. Default: true.
    pub preemption: bool,
    /// Runtime classes. Default: any.
    pub runtime_classes: Option<Vec<String>>,
    /// Schedulers. Default: any. With `kueue` in the list, pods may join queues of Kueue.
    pub schedulers: Option<Vec<String>>,
    /// Queues of Volcano and Kueue. Default: any.
    pub queues: Option<Vec<String>>,
    /// Whether pods may have an affinity. Default: true.
    pub affinity: bool,
    /// Whether pods may have topology spread constraints. Default: true.
    pub topology_spread: bool,
    /// Classes of volumes that are created. Default: any.
    pub storage_classes: Option<Vec<String>>,
    /// Whether the containers of a pod may share a process namespace. Default: false.
    pub share_process_namespace: bool,
    /// Whether a pod may have entries of its own in `/etc/hosts`. Default: false.
    pub host_aliases: bool,
    /// Whether a pod may change its DNS. Default: false.
    pub dns: bool,
    /// Whether a pod may claim devices by dynamic resource allocation. Default: false.
    pub resource_claims: bool,
    /// Sizes and counts. Default: no limits.
    pub limits: Limits,
    /// Keys of labels. Default: any but the reserved ones.
    pub labels: Keys,
    /// Keys of annotations. Default: any but the reserved ones.
    pub annotations: Keys,
    /// Addresses of the application and its dependencies, such as `s3a://team/**`. Default: any.
    pub resources: Option<Vec<String>>,
    /// Whether the driver may resolve Maven packages. Default: false.
    pub packages: Packages,
    /// Spark properties: `allow` permits requests to set those that are reserved to the operator, and `deny` refuses others.
    pub properties: Keys,
    /// Whether a request may contain secrets as plain text. Default: `allow`.
    pub inline_secrets: InlineSecrets,
    /// Rules in the Common Expression Language. Default: none.
    pub cel: Vec<CelRule>,
}

impl Default for PolicyDocument {
    fn default() -> Self {
        Self {
            pod_security: PodSecurity::default(),
            images: None,
            credentials: false,
            service_account_tokens: ServiceAccountTokens::default(),
            volumes: None,
            projected_sources: None,
            host_paths: Vec::new(),
            claims: None,
            csi_drivers: None,
            nfs_servers: None,
            secrets: None,
            config_maps: None,
            node_selectors: None,
            tolerations: None,
            priority_classes: None,
            preemption: true,
            runtime_classes: None,
            schedulers: None,
            queues: None,
            affinity: true,
            topology_spread: true,
            storage_classes: None,
            share_process_namespace: false,
            host_aliases: false,
            dns: false,
            resource_claims: false,
            limits: Limits::default(),
            labels: Keys::default(),
            annotations: Keys::default(),
            resources: None,
            packages: Packages::default(),
            properties: Keys::default(),
            inline_secrets: InlineSecrets::default(),
            cel: Vec::new(),
        }
    }
}

/// The types of volumes that are permitted unless the document lists others.
pub const DEFAULT_VOLUMES: [&str; 7] =
    ["configMap", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"];

/// The sources of projected volumes that are permitted unless the document lists others.
pub const DEFAULT_PROJECTED_SOURCES: [&str; 5] =
    ["clusterTrustBundle", "configMap", "downwardAPI", "secret", "serviceAccountToken"];

/// A level of the Pod Security Standards (<https://kubernetes.io/docs/concepts/security/pod-security-standards/>).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PodSecurity {
    Privileged,
    #[default]
    Baseline,
    Restricted,
}

/// What tokens of service accounts pods may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ServiceAccountTokens {
    /// Whether the token may be mounted automatically. A driver needs one to create executors.
    pub automount: bool,
    /// Audiences besides the API server for which a pod may request tokens.
    pub audiences: Vec<String>,
}

impl Default for ServiceAccountTokens {
    fn default() -> Self {
        Self { automount: true, audiences: Vec::new() }
    }
}

/// Patterns of keys.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Keys {
    pub allow: Option<Vec<String>>,
    pub deny: Vec<String>,
}

/// Maximum sizes and counts. What is left out has no limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// The driver's pod.
    pub driver: PodLimits,
    /// Each executor's pod.
    pub executor: PodLimits,
    /// The number of executors at a time.
    pub executors: Option<u64>,
    /// Cores of all executors together.
    pub total_cores: Option<Amount>,
    /// Memory of all executors together.
    pub total_memory: Option<Amount>,
    /// Storage of all claims together that are created for the driver and its executors.
    pub storage: Option<Amount>,
    /// The size limit of an `emptyDir` volume. Spark's own scratch volumes have none; their use counts as ephemeral storage.
    pub empty_dir: Option<Amount>,
    /// Amounts of other resources in each pod, by name, such as `nvidia.com/gpu`. Names that are left out are refused.
    pub resources: Option<BTreeMap<String, Amount>>,
    /// The number of containers of a pod, init containers included.
    pub containers: Option<u64>,
    pub termination_grace_period_seconds: Option<i64>,
    /// The driver's pod must then have a deadline.
    pub active_deadline_seconds: Option<i64>,
}

/// Maximum sizes of a pod.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PodLimits {
    pub cores: Option<Amount>,
    pub memory: Option<Amount>,
    pub ephemeral_storage: Option<Amount>,
}

/// A quantity of Kubernetes, written as a string or a number: `64Gi`, `500m`, `8`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Amount(pub String);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Whole(u64),
            Decimal(f64),
            Text(String),
        }
        Ok(Self(match Written::deserialize(deserializer)? {
            Written::Whole(number) => number.to_string(),
            Written::Decimal(number) => number.to_string(),
            Written::Text(text) => text,
        }))
    }
}

/// Whether the driver may resolve Maven packages (`spark.jars.packages`): `true`, `false`, or `repositories` for packages of
/// repositories that the request names, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Packages {
    #[default]
    Forbidden,
    Allowed,
    WithRepositories,
}

impl Serialize for Packages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Forbidden => serializer.serialize_bool(false),
            Self::Allowed => serializer.serialize_bool(true),
            Self::WithRepositories => serializer.serialize_str("repositories"),
        }
    }
}

impl<'de> Deserialize<'de> for Packages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Flag(bool),
            Word(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Flag(false) => Ok(Self::Forbidden),
            Written::Flag(true) => Ok(Self::Allowed),
            Written::Word(word) if word == "repositories" => Ok(Self::WithRepositories),
            Written::Word(word) => {
                Err(de::Error::invalid_value(de::Unexpected::Str(&word), &"true, false or repositories"))
            }
        }
    }
}

/// Whether secrets may be written in properties and environment variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum InlineSecrets {
    #[default]
    Allow,
    Forbid,
}

/// A rule of the operator, in the Common Expression Language.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CelRule {
    /// The name of the rule in violations.
    pub name: String,
    /// The condition that a driver must meet. It may use `pod`, `objects`, `properties`, `executor` (the executors' pod as the
    /// driver will create it) and `executorTemplate`.
    pub expression: String,
    /// The message of a violation.
    pub message: String,
}
