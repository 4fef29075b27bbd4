//! What a driver has beside its pod: properties, its Service, claims.

use std::collections::BTreeMap;

use serde_json::Value;
use sparkgate::spark::keys;

use super::{fields, label};

/// Properties that only an operator may set, and credentials.
const OPERATORS: [&str; 20] = [
    "spark.authenticate",
    "spark.driver.extraClassPath",
    "spark.driver.extraJavaOptions",
    "spark.driver.extraLibraryPath",
    "spark.extraListeners",
    "spark.jars.ivySettings",
    "spark.jars.packages",
    "spark.jars.repositories",
    "spark.kubernetes.allocation.pods.allocator",
    "spark.kubernetes.context",
    "spark.kubernetes.decommission.script",
    "spark.kubernetes.driver.master",
    "spark.kubernetes.driver.pod.excludedFeatureSteps",
    "spark.kubernetes.executor.pod.excludedFeatureSteps",
    "spark.kubernetes.executor.pod.featureSteps",
    "spark.kubernetes.trust.certificates",
    "spark.plugins",
    "spark.redaction.regex",
    "spark.ui.filters",
    "spark.remote",
];
const OPERATORS_FAMILIES: [&str; 6] = [
    "spark.kubernetes.authenticate.driver.mounted.",
    "spark.kubernetes.authenticate.driver.oauth",
    "spark.kubernetes.authenticate.oauth",
    "spark.kubernetes.authenticate.submission.",
    "spark.kubernetes.executor.pvc.resize",
    "spark.kubernetes.executor.resize",
];
const ADDRESSES: [&str; 5] =
    ["spark.archives", "spark.eventLog.dir", "spark.files", "spark.jars", "spark.submit.pyFiles"];
const EXECUTORS: u64 = 4;

/// Returns what is outside the policy in the properties of a driver.
pub(crate) fn outside_in_properties(properties: &BTreeMap<String, String>) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in properties {
        let value = value.trim();
        let known = keys::is_known(key);
        let of_operator =
            OPERATORS.contains(&key.as_str()) || OPERATORS_FAMILIES.iter().any(|own| key.starts_with(own));
        let address = ADDRESSES.contains(&key.as_str())
            && !value.split(',').map(str::trim).filter(|address| !address.is_empty()).all(address);
        let secret = key.to_ascii_lowercase().contains("secret.key") && !value.is_empty();
        if !known || of_operator || address || secret || (key.starts_with("spark.kubernetes.") && value.contains("${"))
        {
            found.push(format!("property {key}={value}"));
        }
    }
    let is_on = |key: &str| properties.get(key).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    let count = |key: &str| properties.get(key).map(|value| value.trim().parse().unwrap_or(u64::MAX));
    if count("spark.executor.instances").is_some_and(|count| count > EXECUTORS) {
        found.push("executors".to_owned());
    }
    for family in ["spark.dynamicAllocation", "spark.streaming.dynamicAllocation"] {
        let most = count(&format!("{family}.maxExecutors"));
        if is_on(&format!("{family}.enabled")) && most.is_none_or(|most| most > EXECUTORS) {
            found.push(format!("executors of {family}"));
        }
    }
    found
}

fn address(address: &str) -> bool {
    let permitted = address.starts_with("local:///opt/") || address.starts_with("s3a://team/");
    permitted && !address.contains("..") && !address.contains('%')
}

/// Returns what is outside the policy in an object beside the pod.
pub(crate) fn outside_beside(kind: &str, object: &Value) -> Vec<String> {
    let (metadata, spec) = (&object["metadata"], &object["spec"]);
    let mut found = Vec::new();
    found.extend(fields(&metadata["labels"]).filter(|(key, _)| !label(key)).map(|(key, _)| format!("label {key}")));
    let reserved = |key: &str| key.split('/').next().is_some_and(|domain| domain.ends_with("kubernetes.io"));
    let annotations = fields(&metadata["annotations"]).filter(|(key, _)| reserved(key));
    found.extend(annotations.map(|(key, _)| format!("annotation {key}")));
    match kind {
        "Service" if spec["clusterIP"] != "None" || spec["type"] != "ClusterIP" => {
            found.push(format!("Service {spec}"));
        }
        "PersistentVolumeClaim" => {
            let size = super::resources::amount(&spec["resources"]["requests"]["storage"]);
            if spec["storageClassName"] != "standard" || size > super::resources::amount(&"10Gi".into()) {
                found.push(format!("claim {spec}"));
            }
        }
        _ => {}
    }
    found
}
