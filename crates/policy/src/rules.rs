//! The rules. Each file judges one subject.

mod accounts;
mod cel;
mod fields;
mod images;
mod inline_secrets;
mod kueue;
mod labels;
mod limits;
mod objects;
mod packages;
mod pod_security;
mod properties;
mod references;
mod resources;
mod restarts;
mod scheduling;
mod toggles;
mod volumes;

pub use labels::{IDENTITY as IDENTITY_LABELS, PERMITTED as PERMITTED_KEYS};
use serde_json::Value;

use crate::{
    judgement::{Judgement, Role},
    node::{Node, Root},
    pod_size::CONTAINERS,
    schema,
};

/// Applies all rules to a driver and the executors that it will create.
pub(crate) fn judge(judgement: &mut Judgement<'_>) {
    objects::judge(judgement);
    if let Some(pod) = judgement.pod {
        judge_pod(judgement, Role::Driver, pod);
    }
    let executor = judgement.executor();
    let node = Node::new(Root::Executor, &executor.pod);
    if let Some(pod) = schema::object_type("Pod") {
        fields::judge(judgement, &node, pod.fields);
    }
    objects::judge_metadata(judgement, &node.field("metadata"));
    judge_pod(judgement, Role::Executor, &executor.pod);
    for (volume, claim) in &executor.claims {
        let claim = Node::new(Root::ExecutorClaim(volume), claim);
        objects::judge_metadata(judgement, &claim.field("metadata"));
        objects::judge_claim(judgement, &claim.field("spec"));
    }
    for (key, reason) in &executor.unreadable {
        judgement.report_property("properties", key, format!("{reason}, so the executors can't be judged"));
    }
    properties::judge(judgement);
    packages::judge(judgement);
    resources::judge(judgement);
    limits::judge_totals(judgement, &executor);
    cel::judge(judgement, &executor.pod);
}

/// Applies the rules for pods.
fn judge_pod(judgement: &mut Judgement<'_>, role: Role, pod: &Value) {
    let pod = Node::new(role.root(), pod);
    let spec = pod.field("spec");
    pod_security::judge(judgement, &pod);
    images::judge(judgement, &spec);
    accounts::judge(judgement, &spec);
    volumes::judge(judgement, &spec);
    references::judge(judgement, &spec);
    scheduling::judge(judgement, &spec);
    toggles::judge(judgement, &spec);
    labels::judge_role(judgement, role, &pod.field("metadata").field("labels"));
    limits::judge_pod(judgement, role, &spec);
    inline_secrets::judge_pod(judgement, &pod);
    restarts::judge(judgement, role, &spec);
}

/// Calls a function for each container of a pod, whatever list it is in.
fn each_container(spec: &Node<'_>, mut visit: impl FnMut(&Node<'_>)) {
    for name in CONTAINERS {
        let list = spec.field(name);
        list.items().for_each(|container| visit(&container));
    }
}
