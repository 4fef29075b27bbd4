//! Labels and annotations: reserved keys, and those that the operator permits or refuses.

use super::kueue;
use crate::{
    compiled::CompiledKeys,
    judgement::{Judgement, Role},
    node::Node,
};

/// Labels that Spark itself sets.
const SPARKS_OWN: [&str; 4] = ["spark-app-name", "spark-app-selector", "spark-role", "spark-version"];

/// Keys below Kubernetes' domains that a job may set, and domains with a slash at their end: they describe it, or concern only its own
/// pods. The others direct controllers, load balancers and admission. The annotations of `AppArmor` are judged by `podSecurity`, and
/// the group of a pod must be its own.
pub const PERMITTED: [&str; 8] = [
    "app.kubernetes.io/",
    "cluster-autoscaler.kubernetes.io/safe-to-evict",
    "container.apparmor.security.beta.kubernetes.io/",
    "controller.kubernetes.io/pod-deletion-cost",
    "kubectl.kubernetes.io/default-container",
    "kubectl.kubernetes.io/default-logs-container",
    GROUP_NAME,
    "sparkoperator.k8s.io/",
];
/// The annotation by which a pod joins a group of Volcano.
const GROUP_NAME: &str = "scheduling.k8s.io/group-name";

/// Labels by which Services, network policies and monitoring select the pods of an application: those of a job are no part of any,
/// unless the operator permits it.
pub const IDENTITY: [&str; 5] = [
    "app.kubernetes.io/component",
    "app.kubernetes.io/instance",
    "app.kubernetes.io/managed-by",
    "app.kubernetes.io/name",
    "app.kubernetes.io/part-of",
];
/// Kubeflow's operator books the state of a pod on the application that these name.
const KUBEFLOW: &str = "sparkoperator.k8s.io/";

/// Judges the labels and annotations of an object.
pub(super) fn judge(judgement: &mut Judgement<'_>, metadata: &Node<'_>) {
    let rules = judgement.rules;
    judge_keys(judgement, &metadata.field("labels"), "labels", &rules.labels);
    judge_keys(judgement, &metadata.field("annotations"), "annotations", &rules.annotations);
}

fn judge_keys(judgement: &mut Judgement<'_>, map: &Node<'_>, rule: &str, keys: &CompiledKeys) {
    for (key, node) in map.entries() {
        let is_of_kueue = kueue::judge(judgement, rule, key, &node);
        let is_allowed = is_of_kueue || keys.allow.as_ref().is_some_and(|allowed| allowed.matches(key));
        if let Some(owner) = reserved_for(key).filter(|_| !is_of_kueue) {
            judgement.report(rule, &node, format!("the key is reserved for {owner}"));
        } else if key.starts_with(KUBEFLOW) && !judgement.judged.of_operator {
            judgement.report(rule, &node, "only Kubeflow's operator sets it, on what it submits");
        } else if rule == "labels" && IDENTITY.contains(&key) && !is_allowed {
            let message = "other objects select pods by it: a job has it only if the policy allows it in labels.allow";
            judgement.report(rule, &node, message);
        } else if key == "spark-app-selector" {
            judge_selector(judgement, rule, &node);
        } else if key == GROUP_NAME && !judgement.creates("PodGroup", node.text().unwrap_or_default()) {
            judgement.report(rule, &node, "it must name the PodGroup of this driver");
        }
        if SPARKS_OWN.contains(&key) || key == GROUP_NAME {
            continue;
        }
        if keys.deny.matches(key) {
            judgement.report(rule, &node, "the policy refuses this key");
        } else if let Some(allowed) = &keys.allow
            && !is_allowed
        {
            judgement.report(rule, &node, format!("the key must be one of {}", allowed.describe()));
        }
    }
}

/// Returns what a key is reserved for.
fn reserved_for(key: &str) -> Option<&'static str> {
    let (domain, _) = key.split_once('/')?;
    let domain = domain.to_ascii_lowercase();
    let within = |parent: &str| domain.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    if within("sparkgate.dev") {
        return Some("the gateway");
    }
    let permitted = |own: &str| if own.ends_with('/') { key.starts_with(own) } else { key == own };
    let kubernetes = within("kubernetes.io") || within("k8s.io");
    (kubernetes && !PERMITTED.iter().any(|own| permitted(own))).then_some("Kubernetes")
}

/// Judges Spark's label of the application: the pods of another one would be found by its Service, and deleted by its driver.
fn judge_selector(judgement: &mut Judgement<'_>, rule: &str, node: &Node<'_>) {
    let label = judgement.pod.and_then(|pod| pod["metadata"]["labels"]["spark-app-selector"].as_str());
    let own = judgement.judged.property("spark.app.id").or(label);
    if let Some(own) = own
        && node.text() != Some(own)
    {
        judgement.report(rule, node, format!("it must be {own}, the id of this application"));
    }
}

/// Judges the label that distinguishes drivers from executors.
pub(super) fn judge_role(judgement: &mut Judgement<'_>, role: Role, labels: &Node<'_>) {
    let label = labels.field("spark-role");
    if !label.value.is_null() && label.text() != Some(role.word()) {
        judgement.report("labels", &label, format!("it must be {}", role.word()));
    }
}
