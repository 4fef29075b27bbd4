//! Where and when a pod runs, and fields that a policy permits or not.

use sparkgate_policy::{Names, Policy};

use super::{
    Rule,
    condition::{all_containers, and, names},
    kueue,
};
use crate::cel::literal;

const FINALIZERS: &str = "object.metadata.?finalizers.orValue([])";
/// The condition that a finalizer is the gateway's.
const OWN: &str = "name.startsWith('sparkgate.dev/')";
/// Taints that the API server tolerates for each pod (`DefaultTolerationSeconds`).
const DEFAULT_TAINTS: &str = "['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']";

/// Returns the rules.
pub(super) fn rules(policy: &Policy) -> Vec<Rule> {
    let mut rules = nodes(policy);
    rules.push(tolerations(policy));
    rules.extend(classes(policy));
    rules.extend(toggles(policy));
    rules.push(restarts());
    rules
}

/// Returns the rule that a driver's container runs once. A webhook could add what the gateway never creates. The gateway's annotation
/// names the container; without it, each container is judged as the driver's.
fn restarts() -> Rule {
    const DRIVER: &str = "object.metadata.?annotations[?'sparkgate.dev/driver-container'].orValue(c.name)";
    let condition = format!(
        "object.spec.?restartPolicy.orValue('Always') == 'Never' &&\n\
         \x20 object.spec.containers.all(c, c.name != {DRIVER} ||\n\
         \x20   (dyn(c).?restartPolicy.orValue('Never') == 'Never' && dyn(c).?restartPolicyRules.orValue([]).size() == 0)) &&\n\
         \x20 {}",
        all_containers("dyn(c).?restartPolicyRules.orValue([]).all(r, r.action == 'Restart')"),
    );
    Rule::for_new_role("driver", condition, "a driver runs once: neither its pod nor a rule of a container restarts it")
}

/// Returns the rule for labels of nodes, in selectors and affinities.
fn nodes(policy: &Policy) -> Vec<Rule> {
    const AFFINITY: &str = "object.spec.?affinity.?nodeAffinity";
    let every_term = |condition: &str| {
        format!(
            "{AFFINITY}.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([]).all(t,\n    {condition}) &&\n\
             \x20 {AFFINITY}.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).map(p, p.preference).all(t,\n    {condition})"
        )
    };
    let fields = every_term("!has(t.matchFields)");
    let mut rules = vec![Rule::for_new_pods(fields, "a Spark pod selects nodes by their labels, not by their fields")];
    if let Some(labels) = policy.names(Names::NodeSelectors).map(literal) {
        let selector = format!(
            "object.spec.?nodeSelector.orValue({{}}).all(key, key.matches({labels}) ||\n\
             \x20   (key + '=' + object.spec.nodeSelector[key]).matches({labels}))"
        );
        let expressions = format!(
            "t.?matchExpressions.orValue([]).all(e, e.key.matches({labels}) ||\n\
             \x20     (e.operator == 'In' && e.?values.orValue([]).size() > 0 &&\n\
             \x20     e.?values.orValue([]).all(value, (e.key + '=' + value).matches({labels}))))"
        );
        let conditions = [selector, every_term(&expressions)];
        let message = "the policy of the tenant doesn't permit the label of a node";
        rules.push(Rule::for_new_pods(and(&conditions), message));
    }
    rules
}

/// Returns the rule for tolerations, which can be added later. Those that a pod has already are not judged again: a policy that is
/// made stricter must not hold the pods that run.
fn tolerations(policy: &Policy) -> Rule {
    let permitted = match policy.names(Names::Tolerations) {
        _ if policy.tolerates_all() => "true".to_owned(),
        Some(keys) => format!("t.?key.orValue('') != '' && t.key.matches({})", literal(keys)),
        None => "t.?key.orValue('') != ''".to_owned(),
    };
    let condition = format!(
        "object.spec.?tolerations.orValue([]).all(t, ({permitted}) ||\n\
         \x20 (request.operation == 'UPDATE' && t in oldObject.spec.?tolerations.orValue([])) ||\n\
         \x20 (t.?key.orValue('') in {DEFAULT_TAINTS} && t.?effect.orValue('') == 'NoExecute' && has(t.tolerationSeconds)))"
    );
    Rule::for_new_and_changed_pods(condition, "the policy of the tenant doesn't permit a toleration")
}

/// Returns the rules for classes and schedulers.
fn classes(policy: &Policy) -> Vec<Rule> {
    let mut rules = Vec::new();
    let priority = "object.spec.?priorityClassName.orValue('')";
    let condition = match names(policy, Names::PriorityClasses, None) {
        Some(classes) => format!("{priority}.matches({classes})"),
        None => format!("!{priority}.startsWith('system-')"),
    };
    rules.push(Rule::for_new_pods(condition, "the policy of the tenant doesn't permit the priority class"));
    if let Some(classes) = names(policy, Names::RuntimeClasses, None) {
        let condition = format!("object.spec.?runtimeClassName.orValue('').matches({classes})");
        rules.push(Rule::for_new_pods(condition, "the policy of the tenant doesn't permit the runtime class"));
    }
    // The API server writes the name of its own into a pod that names none.
    if let Some(schedulers) = names(policy, Names::Schedulers, Some("default-scheduler")) {
        let condition = format!("object.spec.?schedulerName.orValue('').matches({schedulers})");
        rules.push(Rule::for_new_pods(condition, "the policy of the tenant doesn't permit the scheduler"));
    }
    rules
}

/// Returns the rules for fields that a policy permits or not, and those that no Spark pod may have.
fn toggles(policy: &Policy) -> Vec<Rule> {
    let document = policy.document();
    let mut rules = vec![
        Rule::for_new_pods("!has(object.spec.nodeName)", "a Spark pod has no nodeName: the scheduler selects the node"),
        Rule::for_new_pods(
            kueue::gates(policy),
            match policy.uses_kueue() {
                true => "a Spark pod has no scheduling gates but Kueue's",
                false => "a Spark pod has no scheduling gates",
            },
        ),
        Rule::for_new_pods(
            "variables.labels[?'spark-role'].orValue('') != 'driver' || object.metadata.?ownerReferences.orValue([]).all(owner, owner.apiVersion.startsWith('sparkoperator.k8s.io/') && owner.kind in ['SparkApplication', 'ScheduledSparkApplication'])",
            "a driver has no owner but an application of Kubeflow's operator",
        ),
        Rule::for_new_pods(
            match policy.uses_kueue() {
                true => format!("{FINALIZERS}.all(name, {OWN} || {})", kueue::finalizer(policy)),
                false => format!("{FINALIZERS}.all(name, {OWN})"),
            },
            match policy.uses_kueue() {
                true => "a Spark pod has no finalizers but the gateway's and Kueue's",
                false => "a Spark pod has no finalizers but the gateway's",
            },
        ),
    ];
    let absent = [
        ("affinity", document.affinity, "!has(object.spec.affinity)", "an affinity"),
        (
            "topologySpread",
            document.topology_spread,
            "object.spec.?topologySpreadConstraints.orValue([]).size() == 0",
            "topology spread constraints",
        ),
        (
            "shareProcessNamespace",
            document.share_process_namespace,
            "!object.spec.?shareProcessNamespace.orValue(false)",
            "a shared process namespace",
        ),
        ("hostAliases", document.host_aliases, "object.spec.?hostAliases.orValue([]).size() == 0", "host aliases"),
        (
            "dns",
            document.dns,
            "!has(object.spec.dnsConfig) && object.spec.?dnsPolicy.orValue('ClusterFirst') == 'ClusterFirst'",
            "changes of its DNS",
        ),
        (
            "resourceClaims",
            document.resource_claims,
            "object.spec.?resourceClaims.orValue([]).size() == 0",
            "claims of devices",
        ),
        (
            "serviceAccountTokens",
            document.service_account_tokens.automount,
            "!object.spec.?automountServiceAccountToken.orValue(true)",
            "an automatic token",
        ),
    ];
    rules.extend(absent.into_iter().filter(|(_, permitted, ..)| !permitted).map(|(rule, _, condition, what)| {
        let message = format!("the policy of the tenant permits no pods with {what} ({rule})");
        Rule::for_new_pods(condition, &message)
    }));
    rules
}
