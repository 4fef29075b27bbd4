//! Restarts of the driver's container: an attempt runs its driver once. Executors are not judged: their driver counts and replaces
//! them.

use super::CONTAINERS;
use crate::{
    judgement::{Judgement, Role},
    node::Node,
};

const RULE: &str = "restarts";
const ONCE: &str = "a driver runs once in its pod";

pub(super) fn judge(judgement: &mut Judgement<'_>, role: Role, spec: &Node<'_>) {
    if role != Role::Driver {
        return;
    }
    let policy = spec.field("restartPolicy");
    if policy.text() != Some("Never") {
        judgement.report(RULE, &policy, format!("it must be Never: {ONCE}"));
    }
    for name in CONTAINERS {
        let list = spec.field(name);
        // Spark appends its container to those of the template.
        let own = list.value.as_array().filter(|_| name == "containers").and_then(|list| list.len().checked_sub(1));
        for (index, container) in list.items().enumerate() {
            match own == Some(index) {
                true => judge_driver(judgement, &container),
                false => judge_other(judgement, &container),
            }
        }
    }
}

/// Judges the driver's container.
fn judge_driver(judgement: &mut Judgement<'_>, container: &Node<'_>) {
    let policy = container.field("restartPolicy");
    if policy.is_set() && policy.text() != Some("Never") {
        judgement.report(RULE, &policy, format!("it must be Never or absent: {ONCE}"));
    }
    let rules = container.field("restartPolicyRules");
    if rules.is_set() {
        judgement.report(RULE, &rules, format!("it must be absent: {ONCE}"));
    }
}

/// Judges another container, which may restart alone.
fn judge_other(judgement: &mut Judgement<'_>, container: &Node<'_>) {
    for rule in container.field("restartPolicyRules").items() {
        let action = rule.field("action");
        if action.text() != Some("Restart") {
            judgement.report(RULE, &action, format!("it must be Restart, for this container alone: {ONCE}"));
        }
    }
}
