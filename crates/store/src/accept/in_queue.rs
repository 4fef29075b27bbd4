//! What is stored of a submission that a queue has to admit.

use std::collections::BTreeMap;

use super::{statement::Statement, tenant_bounds::signed};

/// The queue of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InQueue {
    pub queue: String,
    pub priority: i32,
    pub cost: Cost,
    /// How many submissions may wait in the queue.
    pub max_queued: Option<u64>,
    /// How many seconds it may wait for its admission.
    pub timeout: Option<i32>,
}

/// What a submission may reserve on nodes, before its pods are seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cost {
    /// Its driver and executors.
    pub pods: i32,
    pub millicores: i64,
    pub memory_bytes: i64,
    /// Extended resources by name.
    pub extended: BTreeMap<String, i64>,
    /// The driver's part of these. The requests of its pod replace them.
    pub driver_millicores: i64,
    pub driver_memory_bytes: i64,
    /// Once executors are seen, they count instead of the other part.
    pub grows: bool,
}

/// Adds the values of submissions in queues, and the bounds of the queues.
pub(super) fn bind<'a>(statement: Statement<'a>, all: &[(&'a str, &'a InQueue)]) -> Statement<'a> {
    let column = |value: fn(&InQueue) -> i64| all.iter().map(|(_, one)| value(one)).collect::<Vec<_>>();
    let most: BTreeMap<_, _> = all.iter().filter_map(|(_, one)| Some((one.queue.as_str(), one.max_queued?))).collect();
    statement
        .bind(all.iter().map(|(id, _)| *id).collect::<Vec<_>>())
        .bind(all.iter().map(|(_, one)| one.queue.as_str()).collect::<Vec<_>>())
        .bind(all.iter().map(|(_, one)| one.priority).collect::<Vec<_>>())
        .bind(all.iter().map(|(_, one)| one.timeout).collect::<Vec<_>>())
        .bind(all.iter().map(|(_, one)| one.cost.pods).collect::<Vec<_>>())
        .bind(column(|one| one.cost.millicores))
        .bind(column(|one| one.cost.memory_bytes))
        .bind(column(|one| one.cost.driver_millicores))
        .bind(column(|one| one.cost.driver_memory_bytes))
        .bind(all.iter().map(|(_, one)| one.cost.grows).collect::<Vec<_>>())
        .bind(all.iter().map(|(_, one)| extended(&one.cost.extended)).collect::<Vec<_>>())
        .bind(most.keys().copied().collect::<Vec<_>>())
        .bind(most.values().map(|most| signed(*most)).collect::<Vec<_>>())
}

/// Returns the amounts as JSON, if there are any.
fn extended(amounts: &BTreeMap<String, i64>) -> Option<String> {
    (!amounts.is_empty()).then(|| serde_json::to_string(amounts).ok()).flatten()
}
