//! Sizes of a pod.

use serde_json::Value;

use super::{containers, fields, items};

/// Cores and bytes that a pod may have.
const CORES: f64 = 4.0;
const MEMORY: f64 = 8.0 * 1024.0 * 1024.0 * 1024.0;
const CONTAINERS: usize = 4;

/// Judges requests and limits of a pod. It is enough that the sum of all containers, those of the start included, is small.
pub(super) fn judge(pod: &Value, found: &mut Vec<String>) {
    if containers(pod).count() > CONTAINERS {
        found.push("too many containers".to_owned());
    }
    let of_pod = &pod["spec"]["resources"];
    for list in ["requests", "limits"] {
        for (resource, most) in [("cpu", CORES), ("memory", MEMORY)] {
            let sum: f64 = containers(pod).map(|container| amount(&container["resources"][list][resource])).sum();
            if sum > most || amount(&of_pod[list][resource]) > most {
                found.push(format!("{list} of {resource}: {sum}"));
            }
        }
    }
    for container in containers(pod) {
        let resources = &container["resources"];
        for resource in ["cpu", "memory"] {
            let stated = |of: &Value| ["requests", "limits"].iter().any(|list| !of[list][resource].is_null());
            if !stated(resources) && !stated(of_pod) {
                found.push(format!("{resource} without a size"));
            }
        }
    }
    let other = |(name, _): &(&String, &Value)| !["cpu", "memory", "ephemeral-storage"].contains(&name.as_str());
    let all = containers(pod).map(|container| &container["resources"]).chain([of_pod]);
    for resources in all {
        for list in ["requests", "limits"] {
            found.extend(fields(&resources[list]).filter(other).map(|(name, _)| format!("resource {name}")));
        }
        if items(&resources["claims"]).count() > 0 {
            found.push("claims of devices".to_owned());
        }
    }
}

/// Returns a quantity of Kubernetes as a number; one that can't be read is infinite, an absent one is zero.
pub(super) fn amount(value: &Value) -> f64 {
    let text = match value {
        Value::Null => return 0.0,
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let Ok(number) = text[..end].parse::<f64>() else { return f64::INFINITY };
    let unit = match &text[end..] {
        "" => 1.0,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "Ki" => 1024.0,
        "Mi" => 1024f64.powi(2),
        "Gi" => 1024f64.powi(3),
        "Ti" => 1024f64.powi(4),
        _ => return f64::INFINITY,
    };
    number * unit
}
