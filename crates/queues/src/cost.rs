//! What a submission costs in a queue.

use std::collections::BTreeMap;

use sparkgate_access::{DynamicAllocation, Queue, Queues};
use sparkgate_common::error::Error;
use sparkgate_policy::{ApplicationSize, Executors, PodSize};
use sparkgate_spark::{Quantity, Refusal};
use sparkgate_store::{Cost, Largest, Place, QueueRound, WaitingHead};
use sparkgate_submission::queues::{Amounts, Resource};

/// Computes what a submission costs.
///
/// # Errors
/// The queue counts the largest number of executors, and it isn't bounded.
pub(crate) fn cost(queue: &Queue, capacity: &Amounts, size: &ApplicationSize) -> Result<Cost, Error> {
    let first = size.initial_executors;
    let (executors, grows) = match (queue.dynamic_allocation, size.executors) {
        (DynamicAllocation::Maximum, Executors::AtMost(most)) => (most, false),
        (DynamicAllocation::Maximum, Executors::Unbounded(_)) if queue.caps.is_empty() && capacity.is_empty() => {
            (first, true)
        }
        (DynamicAllocation::Maximum, Executors::Unbounded(key)) => {
            let reason = format!("queue {} counts the largest number of executors: set it", queue.name);
            return Err(Error::QueueRefused(Refusal::property(key, reason)));
        }
        (DynamicAllocation::Running, executors) => (first, executors != Executors::AtMost(first)),
    };
    let of = |pod: &PodSize, name: &str| pod.get(name).copied().unwrap_or_default();
    let total = |name: &str| of(&size.driver, name).plus(of(&size.executor, name).times(executors));
    let names = size.driver.keys().chain(size.executor.keys()).filter(|name| name.contains('/'));
    let extended: BTreeMap<String, i64> = names.map(|name| (name.clone(), total(name).units())).collect();
    Ok(Cost {
        pods: i32::try_from(executors.saturating_add(1)).unwrap_or(i32::MAX),
        millicores: total("cpu").millis(),
        memory_bytes: total("memory").units(),
        extended: extended.into_iter().filter(|(_, amount)| *amount > 0).collect(),
        driver_millicores: of(&size.driver, "cpu").max(Quantity::ZERO).millis(),
        driver_memory_bytes: of(&size.driver, "memory").max(Quantity::ZERO).units(),
        grows,
    })
}

/// Checks that a submission can ever be admitted.
///
/// # Errors
/// It costs more than a cap of its queue, or than the capacity.
pub(crate) fn can_fit(queue: &Queue, capacity: &Amounts, cost: &Cost) -> Result<(), Error> {
    let cost = amounts_of(cost);
    let of_queue = queue.caps.exceeded_by(&cost).map(|found| (found, format!("the cap of queue {}", queue.name)));
    let exceeded = of_queue.or_else(|| Some((capacity.exceeded_by(&cost)?, "the capacity of all queues".to_owned())));
    let Some(((resource, cap, needed), what)) = exceeded else { return Ok(()) };
    let (cap, needed) = (resource.written(cap), resource.written(needed));
    let reason = format!("driver and executors need {needed} {resource} together, more than {what}, {cap}");
    Err(Error::QueueRefused(Refusal::field("queue", reason)))
}

/// Returns what a submission costs.
pub(crate) fn amounts_of(cost: &Cost) -> Amounts {
    amounts(1, (cost.pods.into(), cost.millicores, cost.memory_bytes), &cost.extended)
}

fn amounts(
    submissions: i64,
    (pods, millicores, memory_bytes): (i64, i64, i64),
    extended: &BTreeMap<String, i64>,
) -> Amounts {
    let common = [
        (Resource::Submissions, submissions),
        (Resource::Pods, pods),
        (Resource::Cores, millicores),
        (Resource::Memory, memory_bytes),
    ];
    let extended = extended.iter().map(|(name, amount)| (Resource::Extended(name.clone()), *amount));
    let all = common.into_iter().chain(extended);
    all.map(|(resource, amount)| (resource, u64::try_from(amount).unwrap_or_default())).collect()
}

/// Returns what the admitted submissions of a tenant reserve in a queue.
pub(crate) fn running(place: &Place) -> Amounts {
    amounts(place.submissions, (place.pods, place.millicores, place.memory_bytes), &place.extended)
}

/// Returns what the admitted submissions of a queue reserve.
pub(crate) fn used_by(read: &QueueRound, queue: &str) -> Amounts {
    let mut used = Amounts::default();
    read.places.iter().filter(|place| place.queue == queue).for_each(|place| used.add(&running(place)));
    used
}

/// Returns what a submission that waits costs.
pub(crate) fn waiting_cost(waiting: &WaitingHead) -> Amounts {
    let none = BTreeMap::new();
    let common = (waiting.pods, waiting.millicores, waiting.memory_bytes);
    amounts(1, common, waiting.extended.as_ref().unwrap_or(&none))
}

/// Returns the most that a submission of each queue may cost.
pub(crate) fn largest(queues: &Queues, capacity: &Amounts) -> Vec<Largest> {
    let of_queue = |queue: &Queue| {
        let least = |resource: &Resource| {
            let both = [queue.caps.get(resource), capacity.get(resource)];
            both.into_iter().flatten().min().map(|amount| i64::try_from(amount).unwrap_or(i64::MAX))
        };
        let names = queue.caps.iter().chain(capacity.iter());
        let extended = names.filter_map(|(resource, _)| match resource {
            Resource::Extended(name) => Some((name.clone(), least(resource)?)),
            _ => None,
        });
        Largest {
            queue: queue.name.clone(),
            pods: least(&Resource::Pods),
            millicores: least(&Resource::Cores),
            memory_bytes: least(&Resource::Memory),
            extended: extended.collect(),
        }
    };
    queues.iter().map(of_queue).collect()
}
