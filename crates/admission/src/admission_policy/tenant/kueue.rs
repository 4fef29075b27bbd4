//! Marks by which Kueue holds a pod back, for a tenant whose policy names it among the schedulers. Its webhook sets most of them
//! before this policy judges the pod.

use sparkgate_policy::{
    Names, Policy,
    kueue::{MANAGED, PRIORITY, QUEUE, SUSPENDING_PARENT},
};

use super::{
    Rule,
    condition::{and, names},
};
use crate::cel::{list, literal};

const GATES: &str = "['kueue.x-k8s.io/admission', 'kueue.x-k8s.io/topology']";
const FINALIZER: &str = "kueue.x-k8s.io/managed";
/// An annotation of its webhook, by which it knows equal pods.
const ROLE_HASH: &str = "kueue.x-k8s.io/role-hash";

/// The labels.
pub(super) const LABELS: [&str; 3] = [QUEUE, PRIORITY, MANAGED];
/// The annotations.
pub(super) const ANNOTATIONS: [&str; 2] = [SUSPENDING_PARENT, ROLE_HASH];

/// Returns an alternative for one of these keys, unless the policy refuses it.
pub(super) fn permitted_key(keys: &[&str], deny: &str) -> String {
    format!("\n    (key in {} && !key.matches({})) ||", list(keys), literal(deny))
}

/// Returns the condition for scheduling gates. Kueue removes its own from the pods that it manages, and only from these.
pub(super) fn gates(policy: &Policy) -> String {
    let all = "object.spec.?schedulingGates.orValue([])";
    match policy.uses_kueue() {
        true => format!("{all}.all(gate, {} && gate.name in {GATES})", is_managed()),
        false => format!("{all}.size() == 0"),
    }
}

/// Returns the condition for a finalizer `name` that isn't the gateway's. Kueue removes its own as it does its gates.
pub(super) fn finalizer(policy: &Policy) -> String {
    match policy.uses_kueue() {
        true => format!("(name == {} && {})", literal(FINALIZER), is_managed()),
        false => "false".to_owned(),
    }
}

fn is_managed() -> String {
    format!("variables.labels[?{}].orValue('') == 'true'", literal(MANAGED))
}

/// Returns the rule for the names of queues and of their priority classes.
pub(super) fn rules(policy: &Policy) -> Vec<Rule> {
    if !policy.uses_kueue() {
        return Vec::new();
    }
    let label = |name: &str| format!("variables.labels[?{}].orValue('')", literal(name));
    let mut conditions = Vec::new();
    if let Some(queues) = names(policy, Names::Queues, None) {
        conditions.push(format!("{}.matches({queues})", label(QUEUE)));
    }
    conditions.push(match names(policy, Names::PriorityClasses, None) {
        Some(classes) => format!("{}.matches({classes})", label(PRIORITY)),
        None => format!("!{}.startsWith('system-')", label(PRIORITY)),
    });
    let message = "the policy of the tenant doesn't permit the queue of Kueue, or the priority class in it";
    vec![Rule::for_new_and_changed_pods(and(&conditions), message)]
}
