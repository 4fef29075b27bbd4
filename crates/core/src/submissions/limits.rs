//! Checks Kubernetes' limits when a submission is accepted, so that the client gets an error that names the property instead of
//! a failed launch.

use std::{collections::BTreeMap, io};

use serde::Serialize;

use sparkgate_access::Tenant;
use sparkgate_cluster::Cluster;
use sparkgate_requests::options::{Caps, SubmissionOptions};
use sparkgate_spark::{CreateSubmissionRequest, DriverNames, DriverObjects, NamedRequest, Object, Refusal};
use sparkgate_tenancy::tenancy::NAMESPACE;

const POD_NAME: &str = "spark.kubernetes.driver.pod.name";
/// Families of properties that name a variable of the driver.
const VARIABLES: [&str; 2] = ["spark.kubernetes.driverEnv.", "spark.kubernetes.driver.secretKeyRef."];
/// Lengths of RFC 1123 labels and subdomains, as Kubernetes limits them.
const LABEL_MAX: usize = 63;
const SUBDOMAIN_MAX: usize = 253;
/// `core.MaxSecretSize`, which also applies to the data of a `ConfigMap`.
const CONFIG_MAP_MAX: usize = 1 << 20;
/// etcd's `--max-request-bytes`, 1.5 MiB by default, without a margin for what is added to an object: our labels and annotations, the
/// API server's defaults, sidecars. The API server itself takes 3 MiB.
const OBJECT_MAX: usize = (3 << 19) - (64 << 10);
/// Bytes of a variable in `metadata.managedFields`, which the API server stores with an object: `"k:{\"name\":\"…\"}":{".":{},
/// "f:name":{},"f:value":{}},`; and of a variable from elsewhere.
const MANAGED_VARIABLE: usize = 64;
/// Maximum number of properties and of variables: each is compared with tables and rules. Spark itself has a thousand properties.
const ENTRIES_MAX: usize = 5000;

/// Refuses arguments and variables that are too large for any API server, before they are parsed.
pub(super) fn arguments(request: &CreateSubmissionRequest) -> Result<(), Refusal> {
    // Lengths in the pod's JSON: "…", and {"name":"…","value":"…"},
    let args = request.app_args.iter().map(|arg| arg.len() + 3).sum::<usize>();
    let variables = request.environment_variables.iter().map(|(name, value)| name.len() + value.len() + 23).sum();
    for (field, bytes) in [("appArgs", args), ("environmentVariables", variables)] {
        if bytes > OBJECT_MAX {
            return Err(Refusal::field(field, too_large(bytes)));
        }
    }
    entries("environmentVariables", request.environment_variables.len())
}

/// Refuses a map with too many entries.
fn entries(field: &str, count: usize) -> Result<(), Refusal> {
    match count > ENTRIES_MAX {
        true => Err(Refusal::field(field, format!("{count} entries are too many; the maximum is {ENTRIES_MAX}"))),
        false => Ok(()),
    }
}

/// Refuses properties that don't fit into a driver's `ConfigMap`, before anything is built from them. Those that Spark drops, because
/// they don't begin with `spark.`, are stored with the request, and limited in the same way.
pub(super) fn properties(properties: &BTreeMap<String, String>) -> Result<(), Refusal> {
    entries("sparkProperties", properties.len())?;
    let bytes = properties.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    if bytes > CONFIG_MAP_MAX { Err(properties_too_large(properties, bytes)) } else { Ok(()) }
}

/// Refuses further attempts of a driver with a fixed pod name, which would conflict with the pod of the previous attempt. Also refuses a
/// unique name that is too long for the index.
pub(super) fn retries(named: &NamedRequest, options: &SubmissionOptions) -> Result<(), Refusal> {
    let NamedRequest { request, app_name: name, .. } = named;
    if options.may_repeat() && request.spark_properties.contains_key(POD_NAME) {
        let reason = "each attempt needs a pod of its own: leave the name out, or ask for no retries and no restarts";
        return Err(Refusal::property(POD_NAME, reason));
    }
    if options.unique_name == Some(true) && name.len() > SUBDOMAIN_MAX {
        let reason = format!("a unique name has at most {SUBDOMAIN_MAX} bytes, not {}", name.len());
        return Err(Refusal::property("spark.app.name", reason));
    }
    Ok(())
}

/// Refuses variables of the driver whose name no Kubernetes release accepts.
fn variables(request: &CreateSubmissionRequest) -> Result<(), Refusal> {
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=');
    let reason =
        |name: &str| format!("{name:?} is not a valid name of a variable: printable ASCII characters other than =");
    if let Some(name) = request.environment_variables.keys().find(|name| !is_name(name)) {
        return Err(Refusal::field(format!("environmentVariables[\"{name}\"]"), reason(name)));
    }
    let named = request.spark_properties.keys().filter_map(|key| {
        let name = VARIABLES.iter().find_map(|prefix| key.strip_prefix(prefix))?;
        (!is_name(name)).then_some((key, name))
    });
    named.take(1).try_for_each(|(key, name)| Err(Refusal::property(key, reason(name))))
}

/// Refuses names that Kubernetes doesn't accept (they become part of its API paths) and properties beyond the size of a
/// `ConfigMap`.
pub(super) fn check(
    request: &CreateSubmissionRequest,
    names: &DriverNames,
    driver: &DriverObjects,
    cluster: &Cluster,
    tenant: &Tenant,
) -> Result<(), Refusal> {
    let namespace = &driver.namespace;
    if namespace.len() > LABEL_MAX || !is_label(namespace) {
        let reason = format!(
            "{namespace:?} is not a valid name of a namespace: up to {LABEL_MAX} lower-case letters, digits and inner hyphens"
        );
        return Err(Refusal::property(NAMESPACE, reason));
    }
    if namespace.starts_with("kube-") {
        let reason = format!("`{namespace}` is a namespace of Kubernetes itself: no driver runs there");
        return Err(Refusal::property(NAMESPACE, reason));
    }
    if !cluster.watches(namespace) {
        return Err(not_served(namespace, cluster.namespaces(), tenant));
    }
    pod_name(request, &names.driver_pod)?;
    variables(request)?;
    size(request, driver)?;
    stored_size(request, driver)
}

/// Refuses an object that etcd doesn't take.
fn stored_size(request: &CreateSubmissionRequest, driver: &DriverObjects) -> Result<(), Refusal> {
    let spec = driver.pod.spec.as_ref();
    let containers = spec.iter().flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
    let managed = containers.flat_map(|container| container.env.iter().flatten());
    let managed = managed.map(|variable| variable.name.len() + MANAGED_VARIABLE).sum::<usize>();
    let bytes = length(&driver.pod) + managed;
    if bytes > OBJECT_MAX {
        let args = request.app_args.iter().map(String::len).sum::<usize>();
        let variables = request.environment_variables.iter();
        let variables = variables.map(|(name, value)| 2 * name.len() + value.len() + MANAGED_VARIABLE).sum::<usize>();
        let field = match (args, variables) {
            (args, variables) if args.max(variables) < bytes / 2 => "driverPodTemplate",
            (args, variables) if args >= variables => "appArgs",
            _ => "environmentVariables",
        };
        return Err(Refusal::field(field, too_large(bytes)));
    }
    let objects = driver.pre_resources.iter().chain(&driver.resources);
    match objects.map(length).max().filter(|bytes| *bytes > OBJECT_MAX) {
        Some(bytes) => Err(properties_too_large(&request.spark_properties, bytes)),
        None => Ok(()),
    }
}

fn too_large(bytes: usize) -> String {
    format!("with it, the pod takes {bytes} bytes; a cluster stores objects of up to {OBJECT_MAX} bytes")
}

/// Returns the length of an object as JSON.
fn length(object: &impl Serialize) -> usize {
    struct Counted(usize);

    impl io::Write for Counted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counted = Counted(0);
    // What can't be written as JSON is refused when it is stored.
    let _ = serde_json::to_writer(&mut counted, object);
    counted.0
}

/// Returns the refusal of a namespace that is not served. It names only namespaces of the tenant.
fn not_served(namespace: &str, served: &[String], tenant: &Tenant) -> Refusal {
    let own: Vec<&str> = served.iter().map(String::as_str).filter(|name| tenant.namespaces.contains(name)).collect();
    let own = if own.is_empty() { format!("none of tenant {}", tenant.name) } else { own.join(", ") };
    Refusal::property(NAMESPACE, format!("this gateway doesn't serve the namespace `{namespace}`: it serves {own}"))
}

/// Refuses a grace period of a pod template that is longer than the cap for `killGraceSeconds`: a kill would wait for it.
pub(super) fn grace_period(driver: &DriverObjects, caps: &Caps) -> Result<(), Refusal> {
    let seconds = driver.pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    let cap = caps.kill_grace.and_then(|cap| i64::try_from(cap.as_secs()).ok());
    match (seconds, cap) {
        (Some(seconds), Some(cap)) if seconds > cap => {
            let reason = format!("terminationGracePeriodSeconds is {seconds}: at most {cap} seconds are allowed");
            Err(Refusal::field("driverPodTemplate", reason))
        }
        _ => Ok(()),
    }
}

fn pod_name(request: &CreateSubmissionRequest, name: &str) -> Result<(), Refusal> {
    if name.len() <= SUBDOMAIN_MAX && name.split('.').all(is_label) {
        return Ok(());
    }
    let limit = format!("up to {SUBDOMAIN_MAX} lower-case letters, digits, inner hyphens and dots");
    if request.spark_properties.contains_key(POD_NAME) {
        return Err(Refusal::property(POD_NAME, format!("{name:?} is not a valid name of a pod: {limit}")));
    }
    let reason = format!("it makes a driver pod's name of {} characters; Kubernetes allows {limit}", name.len());
    Err(Refusal::property("spark.app.name", reason))
}

/// Names the largest entry of a `ConfigMap` that is too large: a property, or another file in it.
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
            format!("it and the files next to it take {total} bytes of a ConfigMap, which holds {CONFIG_MAP_MAX}");
        return Err(Refusal::field(format!("file `{largest}`"), reason));
    }
    Err(properties_too_large(&request.spark_properties, total))
}

fn properties_too_large(properties: &BTreeMap<String, String>, bytes: usize) -> Refusal {
    let largest = properties.iter().max_by_key(|(_, value)| value.len());
    let key = largest.map_or("", |(key, _)| key.as_str());
    let reason = format!(
        "all properties together take {bytes} bytes of a ConfigMap, which holds {CONFIG_MAP_MAX}; this is the largest"
    );
    Refusal::property(key, reason)
}

/// Returns whether the text matches `[a-z0-9]([-a-z0-9]*[a-z0-9])?`.
fn is_label(text: &str) -> bool {
    let plain = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    plain && !text.is_empty() && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use sparkgate_access::Access;

    #[test]
    fn a_namespace_cannot_change_the_path_of_a_request() {
        assert!(is_label("spark") && is_label("a-1") && is_label("0"));
        for bad in ["", " default", "Default", "a_b", "-a", "a-", "../x", "a/b", "a?b", "ä", "a%2f"] {
            assert!(!is_label(bad), "{bad}");
        }
    }

    #[test]
    fn a_refused_namespace_names_only_those_of_the_caller() {
        let file = "authentication: {}\ntenants: {red: {namespaces: [red, old]}, blue: {namespaces: [blue]}}\n";
        let access = Access::parse(file).unwrap();
        let red = access.tenants().find(|tenant| tenant.name == "red").unwrap();
        let reason = |served: &[&str]| {
            let served: Vec<String> = served.iter().map(|name| (*name).to_owned()).collect();
            not_served("old", &served, red).reason
        };
        assert_eq!(reason(&["blue", "red"]), "this gateway doesn't serve the namespace `old`: it serves red");
        assert_eq!(reason(&["blue"]), "this gateway doesn't serve the namespace `old`: it serves none of tenant red");
    }

    #[test]
    fn a_variable_whose_name_kubernetes_refuses_is_refused() {
        let refused = |name: &str, key: &str| {
            let mut request = CreateSubmissionRequest::default();
            request.environment_variables.extend((!name.is_empty()).then(|| (name.to_owned(), "x".to_owned())));
            request.spark_properties.insert(key.to_owned(), "x".to_owned());
            variables(&request).err().map(|refusal| refusal.field)
        };
        for (name, key) in
            [("A", "spark.b=c"), ("a.b-c d", "spark.kubernetes.driverEnv.B"), ("1A", "spark.executorEnv.=")]
        {
            assert_eq!(refused(name, key), None, "{name} {key}");
        }
        assert_eq!(refused("1A=", "spark.x").as_deref(), Some("environmentVariables[\"1A=\"]"));
        for key in
            ["spark.kubernetes.driverEnv.A=", "spark.kubernetes.driverEnv.", "spark.kubernetes.driver.secretKeyRef.ä"]
        {
            assert!(refused("A", key).is_some_and(|field| field.contains(key)), "{key}");
        }
    }

    #[test]
    fn requests_too_large_for_kubernetes_are_refused_before_anything_is_built() {
        let mut request =
            CreateSubmissionRequest { app_args: vec![String::new(); OBJECT_MAX / 3], ..Default::default() };
        assert_eq!(arguments(&request), Ok(()));
        request.app_args.push(String::new());
        assert_eq!(arguments(&request).unwrap_err().field, "appArgs");

        let mut half = |key: &str| request.spark_properties.insert(key.to_owned(), "x".repeat(600 << 10));
        half("spark.a");
        assert_eq!(properties(&request.spark_properties), Ok(()));
        let many = (0..=ENTRIES_MAX).map(|at| (format!("spark.a{at}"), String::new())).collect();
        assert_eq!(properties(&many).unwrap_err().field, "sparkProperties");
        // Spark drops it, but it is stored.
        request.spark_properties.insert("not.sparks".to_owned(), "x".repeat(600 << 10));
        assert!(properties(&request.spark_properties).is_err());
    }
}
