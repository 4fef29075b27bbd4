//! The form of the access file. Values are texts with their places: the checks report all faults at once.

use std::{collections::BTreeMap, fmt, marker::PhantomData, path::PathBuf};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_saphyr::Spanned;

/// A text with its place.
pub type Text = Spanned<String>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Document {
    pub(super) authentication: Option<AuthenticationDocument>,
    pub(super) tenants: Entries<TenantDocument>,
    pub(super) members: Option<Vec<MemberDocument>>,
    pub(super) limits: Option<RatesDocument>,
    pub(super) capacity: Option<Spanned<CapacityDocument>>,
    pub(super) queues: Option<Entries<QueueDocument>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AuthenticationDocument {
    pub(super) oidc: Option<Vec<OidcDocument>>,
    pub(super) kubernetes: Option<KubernetesDocument>,
    pub(super) api_keys: Option<ApiKeysDocument>,
    pub(super) certificates: Option<CertificatesDocument>,
    pub(super) proxy: Option<ProxyDocument>,
    pub(super) spark_jws: Option<SparkJwsDocument>,
    pub(super) spark_listener: Option<SparkListenerDocument>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OidcDocument {
    pub(super) name: Option<Text>,
    pub(super) issuer: Text,
    pub(super) audience: Spanned<OneOrMore>,
    pub(super) algorithms: Option<Spanned<Vec<Text>>>,
    pub(super) subject_claim: Option<Text>,
    pub(super) groups_claim: Option<Text>,
    pub(super) required_claims: Option<Entries<serde_json::Value>>,
    pub(super) leeway: Option<Text>,
    pub(super) client_id: Option<String>,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) jwks_uri: Option<Text>,
    pub(super) console: Option<ConsoleDocument>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ConsoleDocument {
    pub(super) client_id: Text,
    pub(super) client_secret_file: Option<PathBuf>,
    pub(super) external_url: Text,
    pub(super) scopes: Option<Vec<Text>>,
    pub(super) idle: Option<Text>,
    pub(super) lifetime: Option<Text>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct KubernetesDocument {
    pub(super) audience: Spanned<OneOrMore>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ApiKeysDocument {
    pub(super) enabled: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CertificatesDocument {
    pub(super) ca_file: PathBuf,
    pub(super) subject: Option<Text>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ProxyDocument {
    pub(super) user_header: Text,
    pub(super) groups_header: Option<Text>,
    pub(super) certificates: Spanned<Vec<Text>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SparkJwsDocument {
    pub(super) secret_file: PathBuf,
    pub(super) require_expiration: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SparkListenerDocument {
    pub(super) listen: Text,
    pub(super) subject: Option<Text>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TenantDocument {
    pub(super) namespaces: Spanned<Vec<Text>>,
    pub(super) service_accounts: Option<Vec<Text>>,
    pub(super) spark_versions: Option<Vec<Text>>,
    pub(super) default_spark_version: Option<Text>,
    pub(super) named_defaults: Option<Vec<Text>>,
    pub(super) files: Option<Vec<Text>>,
    pub(super) properties: Option<Entries<String>>,
    pub(super) defaults: Option<Entries<String>>,
    pub(super) caps: Option<CapsDocument>,
    pub(super) limits: Option<TenantLimitsDocument>,
    pub(super) prices: Option<PricesDocument>,
    pub(super) default_queue: Option<Text>,
    pub(super) sessions: Option<SessionsDocument>,
    pub(super) policy: Option<serde_json::Value>,
    pub(super) members: Option<Vec<MemberDocument>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CapsDocument {
    pub(super) start_timeout: Option<Text>,
    pub(super) run_timeout: Option<Text>,
    pub(super) kill_grace: Option<Text>,
    pub(super) retries: Option<u32>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TenantLimitsDocument {
    pub(super) queued: Option<u64>,
    pub(super) subscribers: Option<u32>,
    pub(super) log_readers: Option<u32>,
    pub(super) file_bytes: Option<u64>,
    pub(super) record_bytes: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SessionsDocument {
    pub(super) shared: Option<bool>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PricesDocument {
    pub(super) core_hour: Text,
    pub(super) gib_hour: Text,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct MemberDocument {
    pub(super) role: Text,
    pub(super) owns_pods: Option<Spanned<bool>>,
    pub(super) groups: Option<Vec<Text>>,
    pub(super) subjects: Option<Vec<Text>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RatesDocument {
    pub(super) writes: Option<Text>,
    pub(super) reads: Option<Text>,
    pub(super) bytes: Option<Text>,
    pub(super) failed_logins: Option<Text>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct QueueDocument {
    pub(super) tenants: Option<Spanned<Vec<Text>>>,
    pub(super) weight: Option<Spanned<u64>>,
    pub(super) caps: Option<AmountsDocument>,
    pub(super) priority: Option<PriorityDocument>,
    pub(super) max_queued: Option<Spanned<u64>>,
    pub(super) queue_timeout: Option<Text>,
    pub(super) dynamic_allocation: Option<Text>,
    pub(super) kueue: Option<Text>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PriorityDocument {
    pub(super) default: Option<Spanned<i64>>,
    pub(super) max: Option<Spanned<i64>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AmountsDocument {
    pub(super) submissions: Option<Text>,
    pub(super) pods: Option<Text>,
    pub(super) cores: Option<Text>,
    pub(super) memory: Option<Text>,
    pub(super) resources: Option<Entries<Text>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CapacityDocument {
    pub(super) submissions: Option<Text>,
    pub(super) pods: Option<Text>,
    pub(super) cores: Option<Text>,
    pub(super) memory: Option<Text>,
    pub(super) resources: Option<Entries<Text>>,
    pub(super) reserve_after: Option<Text>,
    pub(super) from_resource_quotas: Option<bool>,
}

/// A text, or a list of texts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
pub(super) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    pub(super) fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one],
            Self::More(more) => more,
        }
    }
}

/// The entries of a map, with the places of their keys.
pub struct Entries<V>(pub Vec<(Text, V)>);

impl<V> Entries<V> {
    /// Forgets the places.
    pub fn into_map(self) -> BTreeMap<String, V> {
        self.0.into_iter().map(|(key, value)| (key.value, value)).collect()
    }
}

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Entries<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OfEntries<V>(PhantomData<V>);

        impl<'de, V: Deserialize<'de>> Visitor<'de> for OfEntries<V> {
            type Value = Entries<V>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<V>, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(OfEntries(PhantomData))
    }
}
