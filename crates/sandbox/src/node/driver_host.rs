//! The address behind the driver's Service.
//!
//! A JVM here can't resolve the cluster's names without losing all others (`jdk.net.hosts.file` replaces DNS). So the driver
//! gets, as `spark.driver.host`, the answer of the cluster's DNS: the address of the pod that the Service selects.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Pod, Service};

use super::fault::Fault;
use super::objects::Objects;

/// Returns the Service in `<service>.<namespace>.svc`, as Spark writes `spark.driver.host`, if the namespace is the given one.
fn service_name<'a>(host: &'a str, namespace: &str) -> Option<&'a str> {
    let (service, rest) = host.split_once('.')?;
    let rest = rest.strip_suffix(".cluster.local").unwrap_or(rest);
    (rest.strip_suffix(".svc")? == namespace).then_some(service)
}

/// Returns the pod's own address if `host` names a Service that selects the pod; `None`, so that the host stays, if it
/// names none.
///
/// # Errors
/// There is no such Service yet, or it selects other pods: executors would not find this driver in a cluster either.
pub(super) async fn resolve(
    host: &str,
    pod: &Pod,
    address: Ipv4Addr,
    objects: &Objects,
) -> Result<Option<Ipv4Addr>, Fault> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let Some(name) = service_name(host, namespace) else { return Ok(None) };
    let Some(service) = objects.service(name).await? else {
        return Err(Fault::NotYet(format!("service {name:?} not found, which spark.driver.host names")));
    };
    if !selects(&service, pod) {
        return Err(Fault::NotYet(format!("service {name:?}, which spark.driver.host names, doesn't select this pod")));
    }
    Ok(Some(address))
}

fn selects(service: &Service, pod: &Pod) -> bool {
    let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
    let none = BTreeMap::new();
    let labels = pod.metadata.labels.as_ref().unwrap_or(&none);
    selector.is_some_and(|selector| !selector.is_empty() && selector.iter().all(|(k, v)| labels.get(k) == Some(v)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_services_of_the_namespace_are_resolved() {
        assert_eq!(service_name("pi-driver-svc.jobs.svc", "jobs"), Some("pi-driver-svc"));
        assert_eq!(service_name("pi-driver-svc.jobs.svc.cluster.local", "jobs"), Some("pi-driver-svc"));
        assert_eq!(service_name("pi-driver-svc.other.svc", "jobs"), None);
        assert_eq!(service_name("10.0.0.1", "jobs"), None);
        assert_eq!(service_name("localhost", "jobs"), None);
    }

    #[test]
    fn every_label_of_the_selector_must_match() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"labels": {"a": "1", "b": "2"}}})).unwrap();
        let service =
            |selector: serde_json::Value| serde_json::from_value(json!({"spec": {"selector": selector}})).unwrap();
        assert!(selects(&service(json!({"a": "1"})), &pod));
        assert!(!selects(&service(json!({"a": "1", "b": "3"})), &pod));
        assert!(!selects(&service(json!({})), &pod));
        assert!(!selects(&service(json!(null)), &pod));
    }
}
