//! Where, when and before which others a pod is scheduled.

use crate::{judgement::Judgement, node::Node, pattern::Patterns};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub(super) fn judge(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    let rules = judgement.rules;
    if let Some(permitted) = &rules.node_selectors {
        for (key, value) in spec.field("nodeSelector").entries() {
            judge_node_label(judgement, permitted, &value, key, value.text());
        }
        judge_node_affinity(judgement, permitted, &spec.field("affinity").field("nodeAffinity"));
    }
    for toleration in spec.field("tolerations").items() {
        judge_toleration(judgement, &toleration);
    }
    judge_priority_class(judgement, &spec.field("priorityClassName"));
    if !rules.document.preemption && spec.text_of("preemptionPolicy") == "PreemptLowerPriority" {
        judgement.report("preemption", &spec.field("preemptionPolicy"), "it must be Never");
    }
    for (field, rule, permitted) in [
        ("runtimeClassName", "runtimeClasses", &rules.runtime_classes),
        ("schedulerName", "schedulers", &rules.schedulers),
    ] {
        let name = spec.field(field);
        if let (Some(text), Some(permitted)) = (name.text().filter(|text| !text.is_empty()), permitted)
            && !permitted.matches(text)
        {
            judgement.report(rule, &name, format!("it must be one of {}", permitted.describe()));
        }
    }
    for (field, rule, permitted) in [
        ("affinity", "affinity", rules.document.affinity),
        ("topologySpreadConstraints", "topologySpread", rules.document.topology_spread),
    ] {
        let node = spec.field(field);
        if !permitted && node.is_set() {
            judgement.report(rule, &node, "the policy doesn't permit it");
        }
    }
}

/// Judges a label of nodes, alone and together with its value.
fn judge_node_label(
    judgement: &mut Judgement<'_>,
    permitted: &Patterns,
    node: &Node<'_>,
    key: &str,
    value: Option<&str>,
) {
    let pair = value.map(|value| format!("{key}={value}"));
    if !permitted.matches(key) && !pair.is_some_and(|pair| permitted.matches(&pair)) {
        let message = format!("the label of nodes must be one of {}", permitted.describe());
        judgement.report("nodeSelectors", node, message);
    }
}

/// Judges the labels of a node affinity, which selects nodes as a node selector does.
fn judge_node_affinity(judgement: &mut Judgement<'_>, permitted: &Patterns, affinity: &Node<'_>) {
    for term in affinity.field(REQUIRED).field("nodeSelectorTerms").items() {
        judge_term(judgement, permitted, &term);
    }
    for term in affinity.field(PREFERRED).items() {
        judge_term(judgement, permitted, &term.field("preference"));
    }
}

fn judge_term(judgement: &mut Judgement<'_>, permitted: &Patterns, term: &Node<'_>) {
    for expression in term.field("matchExpressions").items() {
        let key = expression.text_of("key");
        let values = expression.field("values");
        if expression.text_of("operator") == "In" && values.is_set() {
            for value in values.items() {
                judge_node_label(judgement, permitted, &value, key, value.text());
            }
        } else {
            judge_node_label(judgement, permitted, &expression.field("key"), key, None);
        }
    }
}

fn judge_toleration(judgement: &mut Judgement<'_>, toleration: &Node<'_>) {
    let key = toleration.field("key");
    let name = key.text().unwrap_or_default();
    match &judgement.rules.tolerations {
        Some(permitted) if permitted.contains("*") || permitted.contains("**") => {}
        Some(permitted) if name.is_empty() || !permitted.matches(name) => {
            judgement.report("tolerations", &key, format!("it must be one of {}", permitted.describe()));
        }
        None if name.is_empty() => {
            judgement.report("tolerations", &key, "a toleration without a key tolerates all taints of nodes");
        }
        _ => {}
    }
}

/// Judges a priority class. Those of the system are for Kubernetes' own pods, unless the policy names them.
pub(super) fn judge_priority_class(judgement: &mut Judgement<'_>, class: &Node<'_>) {
    let Some(name) = class.text().filter(|name| !name.is_empty()) else { return };
    match &judgement.rules.priority_classes {
        Some(permitted) if !permitted.matches(name) => {
            judgement.report("priorityClasses", class, format!("it must be one of {}", permitted.describe()));
        }
        None if name.starts_with("system-") => {
            judgement.report("priorityClasses", class, "the classes of the system are for Kubernetes' own pods");
        }
        _ => {}
    }
}
