//! The rules of `Service` and `PersistentVolumeClaim` that users are likely to break.

use serde_json::Value;

use super::super::failure::Cause;
use super::super::object::{list, text};

pub(super) fn check_service(service: &Value) -> Vec<Cause> {
    let ports = list(service, "/spec/ports");
    let mut causes = Vec::new();
    if ports.is_empty() && text(service, "/spec/clusterIP") != "None" && text(service, "/spec/type") != "ExternalName" {
        causes.push(Cause::required("spec.ports", ""));
    }
    for (index, port) in ports.iter().enumerate() {
        if ports.len() > 1 && text(port, "/name").is_empty() {
            causes.push(Cause::required(format!("spec.ports[{index}].name"), ""));
        }
        let number = port["port"].as_i64().unwrap_or_default();
        if !(1..=65535).contains(&number) {
            let words = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("spec.ports[{index}].port"), &number.to_string(), words));
        }
    }
    causes
}

pub(super) fn check_claim(claim: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if list(claim, "/spec/accessModes").is_empty() {
        causes.push(Cause::required("spec.accessModes", "at least 1 access mode is required"));
    }
    if text(claim, "/spec/resources/requests/storage").is_empty() {
        causes.push(Cause::required("spec.resources[storage]", ""));
    }
    causes
}
