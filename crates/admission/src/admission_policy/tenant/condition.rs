//! Conditions on the parts of a pod.

use sparkgate_policy::{Names, Policy};

use crate::cel::literal;

/// Returns the condition that all containers `c` of a pod fulfil another one.
pub(super) fn all_containers(condition: &str) -> String {
    format!(
        "object.spec.containers.all(c, {condition}) &&\n\
         \x20 object.spec.?initContainers.orValue([]).all(c, {condition})"
    )
}

/// Returns the condition that all volumes `v` of a pod fulfil another one.
pub(super) fn all_volumes(condition: &str) -> String {
    format!("variables.volumes.all(v, {condition})")
}

/// Returns the condition that all sources `s` of projected volumes fulfil another one.
pub(super) fn all_projections(condition: &str) -> String {
    all_volumes(&format!("v.?projected.?sources.orValue([]).all(s, {condition})"))
}

/// Returns a literal regular expression for the names of a list, for an empty text, and for `generated` names. `None` if the policy
/// permits all names.
pub(super) fn names(policy: &Policy, names: Names, generated: Option<&str>) -> Option<String> {
    let permitted = policy.names(names)?;
    let generated = generated.map(|generated| format!("|^(?:{generated})$")).unwrap_or_default();
    Some(literal(&format!("{permitted}{generated}|^$")))
}

/// Joins conditions.
pub(super) fn and(conditions: &[String]) -> String {
    conditions.join(" &&\n  ")
}
