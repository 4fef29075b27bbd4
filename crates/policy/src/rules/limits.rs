//! Sizes and counts of pods, and of all executors together.

use serde_json::Value;

use super::{CONTAINERS, volumes};
use crate::{
    executor::{ExecutorPod, Executors, count},
    judgement::{Judgement, Role},
    node::{Node, Root},
    pod_size::{COMMON, Size},
};
use sparkgate_spark::Quantity;

const RULE: &str = "limits";
const UNREADABLE: &str = "it is not a quantity of Kubernetes";

/// Judges the size of one pod.
pub(super) fn judge_pod(judgement: &mut Judgement<'_>, role: Role, spec: &Node<'_>) {
    let rules = judgement.rules;
    let limits = match role {
        Role::Driver => &rules.limits.driver,
        Role::Executor => &rules.limits.executor,
    };
    judge_amounts(judgement, spec);
    let size = Size::most(spec);
    for (resource, limit) in
        [("cpu", limits.cores), ("memory", limits.memory), ("ephemeral-storage", limits.ephemeral_storage)]
    {
        let Some(limit) = limit else { continue };
        match size.amount(resource) {
            Some(amount) if amount <= limit => {}
            Some(amount) => {
                let message = format!(
                    "{} of {resource} for the pod exceed the limit of {}",
                    written(resource, amount),
                    written(resource, limit)
                );
                report_size(judgement, spec, resource, message);
            }
            None => {
                let message = format!(
                    "each container must state its {resource}, since the limit is {}",
                    written(resource, limit)
                );
                report_size(judgement, spec, resource, message);
            }
        }
    }
    if let Some(permitted) = &rules.limits.resources {
        for (name, amount) in &size.amounts {
            let fits = permitted.get(name).is_some_and(|limit| amount <= limit);
            if !COMMON.contains(&name.as_str()) && !fits {
                let message = match permitted.get(name) {
                    Some(limit) => format!("{} exceed the limit of {}", amount.as_number(), limit.as_number()),
                    None => "the policy doesn't permit this resource".to_owned(),
                };
                report_size(judgement, spec, name, message);
            }
        }
    }
    judge_counts(judgement, role, spec);
    judge_empty_dirs(judgement, spec);
}

fn written(resource: &str, amount: Quantity) -> String {
    if resource == "cpu" { amount.as_number() } else { amount.as_memory() }
}

/// Reports a size at the last container that states it, which is Spark's own, or else at the last container.
fn report_size(judgement: &mut Judgement<'_>, spec: &Node<'_>, resource: &str, message: String) {
    for list in CONTAINERS {
        let list = spec.field(list);
        for container in list.items().collect::<Vec<_>>().into_iter().rev() {
            let resources = container.field("resources");
            for kind in ["requests", "limits"] {
                let amounts = resources.field(kind);
                let amount = amounts.field(resource);
                if !amount.value.is_null() {
                    return judgement.report(RULE, &amount, message);
                }
            }
        }
    }
    judgement.report(RULE, &spec.field("containers"), message);
}

/// Reports the quantities of a pod that can't be read.
fn judge_amounts(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    let mut judge = |resources: &Node<'_>| {
        for list in ["requests", "limits"] {
            for (_, amount) in resources.field(list).entries() {
                if Quantity::from_value(amount.value).is_none_or(|amount| amount < Quantity::ZERO) {
                    judgement.report(RULE, &amount, UNREADABLE);
                }
            }
        }
    };
    judge(&spec.field("resources"));
    super::each_container(spec, |container| judge(&container.field("resources")));
}

fn judge_counts(judgement: &mut Judgement<'_>, role: Role, spec: &Node<'_>) {
    let limits = &judgement.rules.document.limits;
    let containers: usize =
        CONTAINERS.iter().map(|list| spec.value.get(list).and_then(Value::as_array).map_or(0, Vec::len)).sum();
    if let Some(limit) = limits.containers
        && containers as u64 > limit
    {
        let message = format!("{containers} containers exceed the limit of {limit}");
        judgement.report(RULE, &spec.field("containers"), message);
    }
    let grace = spec.field("terminationGracePeriodSeconds");
    if let (Some(seconds), Some(limit)) = (grace.value.as_i64(), limits.termination_grace_period_seconds)
        && seconds > limit
    {
        judgement.report(RULE, &grace, format!("it exceeds the limit of {limit} seconds"));
    }
    let deadline = spec.field("activeDeadlineSeconds");
    if let Some(limit) = limits.active_deadline_seconds {
        match deadline.value.as_i64() {
            Some(seconds) if seconds <= limit => {}
            None if role == Role::Executor => {}
            Some(_) => judgement.report(RULE, &deadline, format!("it exceeds the limit of {limit} seconds")),
            None => judgement.report(RULE, &deadline, format!("it must be set, to at most {limit} seconds")),
        }
    }
}

fn judge_empty_dirs(judgement: &mut Judgement<'_>, spec: &Node<'_>) {
    let Some(limit) = judgement.rules.limits.empty_dir else { return };
    for volume in spec.field("volumes").items() {
        let directory = volume.field("emptyDir");
        let size = directory.field("sizeLimit");
        if directory.value.is_null() || (size.value.is_null() && volumes::is_scratch(volume.value)) {
            continue;
        }
        if Quantity::from_value(size.value).is_none_or(|size| size > limit) {
            judgement.report(RULE, &size, format!("it must be at most {}", limit.as_memory()));
        }
    }
}

/// Judges all executors together, and all storage.
pub(super) fn judge_totals(judgement: &mut Judgement<'_>, executor: &ExecutorPod) {
    let limits = &judgement.rules.limits;
    let node = Node::new(Root::Executor, &executor.pod);
    let spec = node.field("spec");
    let most = judgement.rules.document.limits.executors;
    let is_limited =
        most.is_some() || limits.total_cores.is_some() || limits.total_memory.is_some() || limits.storage.is_some();
    if !is_limited {
        return;
    }
    let (executors, key) = match count(judgement.judged) {
        Executors::AtMost(executors, key) => (executors, key),
        Executors::Unbounded(key) if only_storage(judgement) && stored(&spec, executor) == Quantity::ZERO => (0, key),
        Executors::Unbounded(key) => {
            let message = match most {
                Some(most) => format!("it must be set, to at most {most}: otherwise any number of executors may start"),
                None => "it must be set: otherwise any number of executors may start".to_owned(),
            };
            return judgement.report_property(RULE, key, message);
        }
        Executors::Unreadable(key) => return judgement.report_property(RULE, key, "it is not a whole number"),
    };
    if let Some(most) = most
        && executors > most
    {
        judgement.report_property(RULE, key, format!("{executors} executors exceed the limit of {most}"));
    }
    let size = Size::most(&spec);
    for (resource, limit) in [("cpu", limits.total_cores), ("memory", limits.total_memory)] {
        let Some(limit) = limit else { continue };
        let total = size.amount(resource).map_or(Quantity::MAX, |amount| amount.times(executors));
        if total > limit {
            let message = format!(
                "{executors} executors exceed the limit of {} of {resource} for all of them",
                written(resource, limit)
            );
            judgement.report_property(RULE, key, message);
        }
    }
    judge_storage(judgement, stored(&spec, executor).times(executors));
}

/// Returns whether storage is the only limit of all executors together.
fn only_storage(judgement: &Judgement<'_>) -> bool {
    let limits = &judgement.rules.limits;
    judgement.rules.document.limits.executors.is_none() && limits.total_cores.is_none() && limits.total_memory.is_none()
}

/// Returns the storage that is created for each executor.
fn stored(spec: &Node<'_>, executor: &ExecutorPod) -> Quantity {
    let claims = executor.claims.values().map(|claim| claimed(&claim["spec"]));
    claims.fold(ephemeral(spec), Quantity::plus)
}

/// Returns the storage of a pod's ephemeral volumes.
fn ephemeral(spec: &Node<'_>) -> Quantity {
    let mut sum = Quantity::ZERO;
    for volume in spec.field("volumes").items() {
        let template = &volume.value["ephemeral"]["volumeClaimTemplate"];
        if !template.is_null() {
            sum = sum.plus(claimed(&template["spec"]));
        }
    }
    sum
}

/// Returns the storage that a claim requests. One that can't be read is more than any limit.
fn claimed(spec: &Value) -> Quantity {
    Quantity::from_value(&spec["resources"]["requests"]["storage"]).unwrap_or(Quantity::MAX)
}

fn judge_storage(judgement: &mut Judgement<'_>, executors: Quantity) {
    let Some(limit) = judgement.rules.limits.storage else { return };
    let mut sum = executors;
    for object in judgement.judged.objects {
        if object["kind"] == "PersistentVolumeClaim" {
            sum = sum.plus(claimed(&object["spec"]));
        }
    }
    if let Some(pod) = judgement.pod {
        let pod = Node::new(Root::Driver, pod);
        sum = sum.plus(ephemeral(&pod.field("spec")));
    }
    if sum > limit {
        let message = format!("the claims of driver and executors exceed the limit of {}", limit.as_memory());
        judgement.report_at(RULE, "PersistentVolumeClaim", message);
    }
}
