//! The names of one attempt. They are generated once and stored, so that a repeated launch finds its own objects.

mod sanitize;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::named_request::NamedRequest;
pub(crate) use sanitize::app_name_label;

/// Kubernetes' limit for the name of a Service (RFC 1123 label).
const SERVICE_NAME_MAX: usize = 63;
/// Kubernetes' limit for the name of a `ConfigMap` (RFC 1123 subdomain).
const CONFIG_MAP_NAME_MAX: usize = 253;

/// All names and ids that an attempt will ever use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriverNames {
    /// `spark.app.id`: `spark-` and 32 hex digits.
    pub app_id: String,
    /// The prefix of most objects' names: the sanitised application name and a unique id.
    pub resource_prefix: String,
    pub driver_pod: String,
    pub driver_service: String,
    /// The main `ConfigMap`, `spark-drv-<unique id>-conf-map`.
    pub config_map: String,
    /// The random part of the default local directory, `/var/data/spark-<uuid>`.
    pub local_dir: Uuid,
}

/// The randomness from which the names of one attempt are made. This layer generates none itself: the caller passes new values
/// for each attempt, and the same values to get the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameEntropy {
    pub app_id: Uuid,
    pub local_dir: Uuid,
    /// Spark generates a separate unique id for each of these three.
    pub resource_prefix: [u8; 3],
    pub config_map: [u8; 3],
    pub driver_service: [u8; 3],
}

impl NameEntropy {
    /// Splits four random (version 4) UUIDs into the parts.
    pub fn from_uuids(app_id: Uuid, local_dir: Uuid, prefix: Uuid, others: Uuid) -> Self {
        // Bytes 0–2 and 10–12 of a version 4 UUID are free of its version and variant bits.
        let three = |id: Uuid, at: usize| [id.as_bytes()[at], id.as_bytes()[at + 1], id.as_bytes()[at + 2]];
        Self {
            app_id,
            local_dir,
            resource_prefix: three(prefix, 0),
            config_map: three(others, 0),
            driver_service: three(others, 10),
        }
    }
}

impl DriverNames {
    /// Generates the names for an application, as Spark's submission client does.
    ///
    /// `pod_name` is `spark.kubernetes.driver.pod.name`; `now_ms` is the time in milliseconds since the epoch, a part of every
    /// unique id. Kubernetes' limits are respected for the Service (which then has a short name) and the `ConfigMap`. As with
    /// Spark, a pod name may become too long, and then the API server refuses it.
    pub fn generate(app_name: &str, pod_name: Option<&str>, now_ms: i64, entropy: &NameEntropy) -> Self {
        let resource_prefix = sanitize::resource_prefix(app_name, &unique_id(entropy.resource_prefix, now_ms));
        Self::with_prefix(resource_prefix, pod_name, now_ms, entropy)
    }

    /// Returns the names of another attempt of the same application. Only the random parts change; a pod name that the request
    /// sets stays.
    #[must_use]
    pub fn drawn_anew(&self, now_ms: i64, entropy: &NameEntropy) -> Self {
        // The unique id is what follows the last hyphen, or all of it.
        let app_name = self.resource_prefix.rsplit_once('-').map_or("", |(app_name, _)| app_name);
        let resource_prefix = sanitize::resource_prefix(app_name, &unique_id(entropy.resource_prefix, now_ms));
        let drawn = self.driver_pod == pod_of(&self.resource_prefix);
        Self::with_prefix(resource_prefix, Some(self.driver_pod.as_str()).filter(|_| !drawn), now_ms, entropy)
    }

    fn with_prefix(resource_prefix: String, pod_name: Option<&str>, now_ms: i64, entropy: &NameEntropy) -> Self {
        let mut driver_service = format!("{resource_prefix}-driver-svc");
        if driver_service.len() > SERVICE_NAME_MAX {
            driver_service = format!("spark-{}-driver-svc", unique_id(entropy.driver_service, now_ms));
        }
        let suffix = "-conf-map";
        let mut config_map = format!("spark-drv-{}", unique_id(entropy.config_map, now_ms));
        config_map.truncate(CONFIG_MAP_NAME_MAX - suffix.len());
        Self {
            app_id: format!("spark-{}", entropy.app_id.simple()),
            driver_pod: pod_name.map_or_else(|| pod_of(&resource_prefix), str::to_owned),
            resource_prefix,
            driver_service,
            config_map: config_map + suffix,
            local_dir: entropy.local_dir,
        }
    }

    /// Generates the names for a request, from the name of its application and its pod name.
    pub fn for_request(named: &NamedRequest, now_ms: i64, entropy: &NameEntropy) -> Self {
        let pod_name = named.request.spark_properties.get("spark.kubernetes.driver.pod.name");
        Self::generate(&named.app_name, pod_name.map(String::as_str), now_ms, entropy)
    }
}

fn pod_of(resource_prefix: &str) -> String {
    format!("{resource_prefix}-driver")
}

/// Returns the id of `KubernetesUtils.uniqueID`: three random bytes and the low forty bits of the time, in hex.
fn unique_id(random: [u8; 3], now_ms: i64) -> String {
    let [a, b, c] = random;
    format!("{a:02x}{b:02x}{c:02x}{:x}", now_ms & ((1 << 40) - 1))
}

#[cfg(test)]
mod tests;
