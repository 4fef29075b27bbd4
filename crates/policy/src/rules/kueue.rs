//! Kueue's labels and annotations, by which a pod joins a queue: for tenants whose policy names `kueue` among the schedulers.

use super::scheduling;
use crate::{
    judgement::Judgement,
    kueue::{MANAGED, PRIORITY, QUEUE, SUSPENDING_PARENT},
    node::Node,
};

/// Judges a key, if the tenant uses Kueue and the key is one of Kueue's for jobs. Returns whether it is.
pub(super) fn judge(judgement: &mut Judgement<'_>, field: &str, key: &str, node: &Node<'_>) -> bool {
    if !judgement.rules.uses_kueue() {
        return false;
    }
    match (field, key) {
        ("labels", QUEUE) => judge_queue(judgement, node),
        ("labels", PRIORITY) => scheduling::judge_priority_class(judgement, node),
        ("labels", MANAGED) if node.text() != Some("true") => judgement.report(field, node, "it must be true"),
        ("labels", MANAGED) | ("annotations", SUSPENDING_PARENT) => {}
        _ => return false,
    }
    true
}

/// Judges the name of a queue.
pub(super) fn judge_queue(judgement: &mut Judgement<'_>, queue: &Node<'_>) {
    if let (Some(name), Some(permitted)) = (queue.text(), &judgement.rules.queues)
        && !permitted.matches(name)
    {
        judgement.report("queues", queue, format!("it must be one of {}", permitted.describe()));
    }
}
