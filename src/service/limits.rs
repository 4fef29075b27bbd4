//! Kubernetes' limits that a request must keep: told at once, by the property at fault, instead of by a failed launch.

use std::collections::BTreeMap;

use crate::{
    cluster::Cluster,
    spark::{CreateSubmissionRequest, DriverNames, DriverObjects, Object, Refusal},
};

const NAMESPACE: &str = "spark.kubernetes.namespace";
const POD_NAME: &str = "spark.kubernetes.driver.pod.name";
/// RFC 1123 label and subdomain, as Kubernetes bounds them.
const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;
/// `core.MaxSecretSize`, which holds for the data of a `ConfigMap` too.
const CONFIG_MAP_MAX: usize = 1 << 20;

/// Refuses names that Kubernetes has no place for (they go into the paths of its API) and properties beyond the size of a
/// `ConfigMap`.
pub(super) fn check(
    request: &CreateSubmissionRequest,
    names: &DriverNames,
    driver: &DriverObjects,
    cluster: &Cluster,
) -> Result<(), Refusal> {
    let namespace = &driver.namespace;
    if namespace.len() > LABEL_MAX || !is_label(namespace) {
        let reason = format!(
            "{namespace:?} is not the name of a namespace: up to {LABEL_MAX} lower-case letters, digits and inner hyphens"
        );
        return Err(Refusal::property(NAMESPACE, reason));
    }
    if !cluster.watches(namespace) {
        let served = cluster.namespaces().join(", ");
        let reason = format!("`{namespace}` is not a namespace of this gateway: it serves {served}");
        return Err(Refusal::property(NAMESPACE, reason));
    }
    pod_name(request, &names.driver_pod)?;
    size(request, driver)
}

fn pod_name(request: &CreateSubmissionRequest, name: &str) -> Result<(), Refusal> {
    if name.len() <= SUBDOMAIN_MAX && name.split('.').all(is_label) {
        return Ok(());
    }
    let limit = format!("up to {SUBDOMAIN_MAX} lower-case letters, digits, inner hyphens and dots");
    if request.spark_properties.contains_key(POD_NAME) {
        return Err(Refusal::property(POD_NAME, format!("{name:?} is not the name of a pod: {limit}")));
    }
    let reason = format!("it makes a driver pod's name of {} characters; Kubernetes takes {limit}", name.len());
    Err(Refusal::property("spark.app.name", reason))
}

/// Names what takes most of a `ConfigMap` that is too large: a property, or a file that lies beside them.
fn size(request: &CreateSubmissionRequest, driver: &DriverObjects) -> Result<(), Refusal> {
    let maps = driver.resources.iter().filter_map(|object| match object {
        Object::ConfigMap(map) => map.data.as_ref(),
        _ => None,
    });
    let bytes = |data: &BTreeMap<String, String>| data.values().map(String::len).sum::<usize>();
    let Some(data) = maps.max_by_key(|data| bytes(data)).filter(|data| bytes(data) > CONFIG_MAP_MAX) else {
        return Ok(());
    };
    let total = bytes(data);
    let largest = data.iter().max_by_key(|(_, text)| text.len()).map_or("", |(name, _)| name.as_str());
    if largest != "spark.properties" {
        let reason =
            format!("it and what lies beside it take {total} bytes of a ConfigMap, which holds {CONFIG_MAP_MAX}");
        return Err(Refusal::field(format!("file `{largest}`"), reason));
    }
    let largest = request.spark_properties.iter().max_by_key(|(_, value)| value.len());
    let key = largest.map_or("", |(key, _)| key.as_str());
    let reason = format!(
        "all properties together take {total} bytes of a ConfigMap, which holds {CONFIG_MAP_MAX}; this is the largest"
    );
    Err(Refusal::property(key, reason))
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
fn is_label(text: &str) -> bool {
    let plain = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    plain && !text.is_empty() && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::is_label;

    #[test]
    fn a_label_cannot_leave_its_place_in_a_path() {
        assert!(is_label("spark") && is_label("a-1") && is_label("0"));
        for bad in ["", " default", "Default", "a_b", "-a", "a-", "../x", "a/b", "a?b", "ä", "a%2f"] {
            assert!(!is_label(bad), "{bad}");
        }
    }
}
