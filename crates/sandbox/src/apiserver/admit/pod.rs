//! The rules of `Pod` that a driver or an executor can break.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::super::failure::Cause;
use super::super::object::{list, text};
use super::super::resource::NameRule;
use super::{containers, quantity};

pub(super) fn check(pod: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if list(pod, "/spec/containers").is_empty() {
        causes.push(Cause::required("spec.containers", ""));
    }
    let volumes = volumes(pod, &mut causes);
    let mut names = HashSet::new();
    for (field, containers) in containers(pod) {
        for (index, container) in containers.iter().enumerate() {
            let path = format!("spec.{field}[{index}]");
            causes.extend(check_container(&path, container, &volumes));
            let name = text(container, "/name");
            if !name.is_empty() && !names.insert(name) {
                causes.push(Cause::duplicate(format!("{path}.name"), name));
            }
        }
    }
    let policy = text(pod, "/spec/restartPolicy");
    let policies = ["Always", "OnFailure", "Never"];
    if !policies.contains(&policy) {
        causes.push(Cause::not_supported("spec.restartPolicy", policy, &policies));
    }
    for (field, pointer) in [("spec.hostname", "/spec/hostname"), ("spec.subdomain", "/spec/subdomain")] {
        let name = text(pod, pointer);
        if !name.is_empty() {
            causes.extend(NameRule::Label.check(field, name));
        }
    }
    for (field, pointer) in
        [("spec.serviceAccountName", "/spec/serviceAccountName"), ("spec.nodeName", "/spec/nodeName")]
    {
        let name = text(pod, pointer);
        if !name.is_empty() {
            causes.extend(NameRule::Subdomain.check(field, name));
        }
    }
    causes
}

fn volumes<'a>(pod: &'a Value, causes: &mut Vec<Cause>) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    for (index, volume) in list(pod, "/spec/volumes").iter().enumerate() {
        let (field, name) = (format!("spec.volumes[{index}].name"), text(volume, "/name"));
        if name.is_empty() {
            causes.push(Cause::required(field, ""));
        } else if !names.insert(name) {
            causes.push(Cause::duplicate(field, name));
        } else {
            causes.extend(NameRule::Label.check(&field, name));
        }
    }
    names
}

fn check_container(path: &str, container: &Value, volumes: &HashSet<&str>) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text(container, "/name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    } else {
        causes.extend(NameRule::Label.check(&format!("{path}.name"), name));
    }
    if text(container, "/image").is_empty() {
        causes.push(Cause::required(format!("{path}.image"), ""));
    }
    for (index, variable) in list(container, "/env").iter().enumerate() {
        let (field, name) = (format!("{path}.env[{index}].name"), text(variable, "/name"));
        if name.is_empty() {
            causes.push(Cause::required(field, ""));
        } else if name.contains('=') || !name.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            let words =
                "a valid environment variable name must consist only of printable ASCII characters other than '='";
            causes.push(Cause::invalid(field, name, words));
        }
    }
    for (index, mount) in list(container, "/volumeMounts").iter().enumerate() {
        let (field, name) = (format!("{path}.volumeMounts[{index}]"), text(mount, "/name"));
        if !volumes.contains(name) {
            causes.push(Cause::not_found(format!("{field}.name"), name));
        }
        if text(mount, "/mountPath").is_empty() {
            causes.push(Cause::required(format!("{field}.mountPath"), ""));
        }
    }
    for (resource, request) in resources(container, "requests") {
        let limit = container.pointer("/resources/limits").and_then(|limits| limits[resource].as_str());
        let Some(limit) = limit else { continue };
        if quantity::parse(request) > quantity::parse(limit) {
            let words = format!("must be less than or equal to {resource} limit of {limit}");
            causes.push(Cause::invalid(format!("{path}.resources.requests"), request, &words));
        }
    }
    causes
}

fn resources<'a>(container: &'a Value, part: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let quantities = container["resources"][part].as_object().into_iter().flat_map(Map::iter);
    quantities.map(|(name, quantity)| (name.as_str(), quantity.as_str().unwrap_or_default()))
}

/// Returns the message for an invalid quantity, which the real server refuses while it decodes.
pub(super) fn wrong_quantity(pod: &Value) -> Option<String> {
    let wrong = containers(pod)
        .flat_map(|(_, containers)| containers)
        .flat_map(|container| resources(container, "requests").chain(resources(container, "limits")))
        .any(|(_, quantity)| quantity::parse(quantity).is_none());
    wrong.then(|| {
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'".to_owned()
    })
}
