//! Sizes of a pod: the limits that concern one pod. Those of all pods together are a `ResourceQuota`'s.
//!
//! As in the gateway's policy, a container counts with its limit or, without one, with its request; containers that run together
//! are added up, and init containers run one after the other beside the sidecars. CEL adds up no quantities, so sums are numbers.

use sparkgate_policy::{Amount, PodLimits, Policy};

use super::{
    Rule,
    condition::{all_containers, all_volumes},
};
use crate::cel::{list, literal};

/// Resources with limits of their own.
const COMMON: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
const INIT: &str = "object.spec.?initContainers.orValue([])";
/// The grace period that the API server writes into a pod that states none.
const DEFAULT_GRACE: i64 = 30;

/// Returns the rules.
pub(super) fn rules(policy: &Policy) -> Vec<Rule> {
    let limits = &policy.document().limits;
    let mut rules = Vec::new();
    for (role, of_pod) in [("driver", &limits.driver), ("executor", &limits.executor)] {
        for (resource, limit) in amounts(of_pod) {
            let condition = format!("{} && {}", is_stated(resource), is_within(resource, limit));
            let message = format!("the limit of {resource} for the pod of {} is {}", with_article(role), limit.0);
            rules.push(Rule::for_new_role(role, condition, &message));
        }
    }
    if let Some(permitted) = &limits.resources {
        let known: Vec<&str> = COMMON.into_iter().chain(permitted.keys().map(String::as_str)).collect();
        let known = list(known);
        let names =
            |of: &str, kind: &str| format!("{}.?{kind}.orValue({{}}).all(name, name in {known})", resources(of));
        let both = |of: &str| format!("{} && {}", names(of, "requests"), names(of, "limits"));
        let condition = format!("{} &&\n  {}", all_containers(&both("c")), both("object.spec"));
        rules.push(Rule::for_new_pods(condition, "the policy of the tenant doesn't permit a resource"));
        for (resource, limit) in permitted {
            let message = format!("the limit of {resource} for a pod is {}", limit.0);
            rules.push(Rule::for_new_pods(is_within(resource, limit), &message));
        }
    }
    if let Some(most) = limits.containers {
        let condition = format!("object.spec.containers.size() + {INIT}.size() <= {most}");
        rules.push(Rule::for_new_pods(condition, &format!("a pod has at most {most} containers")));
    }
    if let Some(most) = limits.termination_grace_period_seconds {
        let condition = format!(
            "object.spec.?terminationGracePeriodSeconds.orValue({DEFAULT_GRACE}) <= {}",
            most.max(DEFAULT_GRACE)
        );
        rules.push(Rule::for_new_pods(condition, &format!("the grace period of a pod is at most {most} seconds")));
    }
    if let Some(most) = limits.active_deadline_seconds {
        let message = format!("the deadline of a pod is at most {most} seconds, and that of a driver must be set");
        let seconds = "object.spec.?activeDeadlineSeconds";
        rules.push(Rule::for_new_role(
            "driver",
            format!("{seconds}.orValue({}) <= {most}", most.saturating_add(1)),
            &message,
        ));
        rules.push(Rule::for_new_role("executor", format!("{seconds}.orValue(0) <= {most}"), &message));
    }
    rules.extend(limits.empty_dir.as_ref().map(empty_dirs));
    rules.extend(limits.storage.as_ref().map(storage));
    rules
}

fn with_article(role: &str) -> &'static str {
    if role == "driver" { "a driver" } else { "an executor" }
}

fn amounts(limits: &PodLimits) -> impl Iterator<Item = (&'static str, &Amount)> {
    let amounts = [&limits.cores, &limits.memory, &limits.ephemeral_storage];
    COMMON.into_iter().zip(amounts).filter_map(|(resource, amount)| Some((resource, amount.as_ref()?)))
}

/// Returns the resources of a container or a pod. Kubernetes' schema gives quantities no type, so the fields with quantities are
/// untyped here: otherwise the API server warns that they are undefined.
fn resources(of: &str) -> String {
    format!("dyn({of}).?resources")
}

/// Returns how much of a resource a container or a pod may use, as a number.
fn amount(of: &str, resource: &str) -> String {
    let of = resources(of);
    let name = literal(resource);
    format!("quantity({of}.?limits[?{name}].or({of}.?requests[?{name}]).orValue('0')).asApproximateFloat()")
}

/// Returns a limit as a number. Sums of numbers aren't exact.
pub(in super::super) fn limit(Amount(amount): &Amount) -> String {
    format!("quantity({}).asApproximateFloat() * 1.000001", literal(amount))
}

fn is_within(resource: &str, most: &Amount) -> String {
    let (amount, most) = (|of: &str| amount(of, resource), limit(most));
    let of_each = amount("c");
    let sidecars = format!("{INIT}.filter(d, d.?restartPolicy.orValue('') == 'Always').map(d, {}).sum()", amount("d"));
    format!(
        "object.spec.containers.map(c, {of_each}).sum() +\n    {sidecars} <= {most} &&\n\
         \x20 {INIT}.all(c, c.?restartPolicy.orValue('') == 'Always' || {of_each} +\n    {sidecars} <= {most}) &&\n\
         \x20 {} <= {most}",
        amount("object.spec"),
    )
}

/// Returns the condition that all containers state a resource, or the pod does.
fn is_stated(resource: &str) -> String {
    let name = literal(resource);
    let stated = |of: &str| {
        let of = resources(of);
        format!("({of}.?limits[?{name}].hasValue() || {of}.?requests[?{name}].hasValue())")
    };
    format!("({} ||\n  ({}))", stated("object.spec"), all_containers(&stated("c")))
}

fn empty_dirs(most: &Amount) -> Rule {
    let condition = format!(
        "!has(v.emptyDir) || (dyn(v).emptyDir.?sizeLimit.hasValue() ?\n\
         \x20   quantity(dyn(v).emptyDir.sizeLimit).compareTo(quantity({})) <= 0 : v.name.startsWith('spark-local-dir-'))",
        literal(&most.0)
    );
    Rule::for_new_pods(all_volumes(&condition), &format!("the sizeLimit of an emptyDir volume is at most {}", most.0))
}

/// Returns the rule for the storage that a pod creates for itself.
fn storage(most: &Amount) -> Rule {
    let size = "quantity(dyn(v).ephemeral.volumeClaimTemplate.spec.?resources.?requests[?'storage'].orValue('0')).asApproximateFloat()";
    let condition = format!("variables.volumes.filter(v, has(v.ephemeral)).map(v, {size}).sum() <= {}", limit(most));
    Rule::for_new_pods(condition, &format!("the storage of a pod's ephemeral volumes is at most {}", most.0))
}
