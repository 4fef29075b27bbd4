//! Checks the queues.

use std::time::Duration;

use serde_saphyr::Spanned;
use sparkgate_spark::Quantity;
use sparkgate_submission::{
    parse_duration,
    queues::{Amounts, PRIORITIES, Resource},
};

use super::{
    document::{AmountsDocument, CapacityDocument, Entries, PriorityDocument, QueueDocument, Text},
    fault::Faults,
};
use crate::{
    name::is_label,
    queue::{DynamicAllocation, KueueQueue, Queue, Queues},
    tenant::Tenant,
};

const HEAVIEST: u64 = 1000;
/// The longest name of an extended resource of Kubernetes.
const LONGEST_RESOURCE: usize = 317;

/// Checks the capacity and all queues, and the default queues of the tenants.
pub(super) fn check(
    capacity: Option<Spanned<CapacityDocument>>,
    documents: Option<Entries<QueueDocument>>,
    tenants: &mut [Tenant],
    defaults: &[(String, Option<Text>)],
    faults: &mut Faults,
) -> Queues {
    let mut queues = Queues::default();
    let documents = documents.unwrap_or(Entries(Vec::new())).0;
    if let Some(document) = capacity {
        if documents.is_empty() {
            faults.add(&document.referenced, "capacity", "queues share it, and there is none: add `queues`");
        }
        let CapacityDocument { submissions, pods, cores, memory, resources, reserve_after, from_resource_quotas } =
            document.value;
        queues.learns_capacity = from_resource_quotas.unwrap_or_default();
        let document = AmountsDocument { submissions, pods, cores, memory, resources };
        queues.capacity = amounts(document, "capacity", faults).into_iter().map(|(amount, ..)| amount).collect();
        if let Some(text) = reserve_after
            && let Some(time) = time(&text, "capacity.reserveAfter", Duration::ZERO, faults)
        {
            queues.reserve_after = time;
        }
    }
    for (name, document) in documents {
        let queue = queue(name, document, &queues.capacity, tenants, faults);
        queues.all.insert(queue.name.clone(), queue);
    }
    for (tenant, (name, text)) in tenants.iter_mut().zip(defaults) {
        tenant.default_queue = default_queue(name, text.as_ref(), &queues, faults);
    }
    queues
}

fn queue(name: Text, document: QueueDocument, capacity: &Amounts, tenants: &[Tenant], faults: &mut Faults) -> Queue {
    let path = format!("queues.{}", name.value);
    if !is_label(&name.value) {
        let form = "up to 63 lower-case letters, digits and hyphens, and begins and ends with a letter or a digit";
        faults.add(&name.referenced, &path, format!("a queue's name has {form}"));
    }
    let caps = amounts(document.caps.unwrap_or_default(), &format!("{path}.caps"), faults);
    for ((resource, cap), at, text) in &caps {
        if let Some(all) = capacity.get(resource).filter(|all| cap > all) {
            let all = resource.written(all);
            faults.add(&text.referenced, at, format!("it is more than the capacity of all queues, {all}: lower it"));
        }
    }
    let (default_priority, max_priority) = priority(document.priority.unwrap_or_default(), &path, faults);
    Queue {
        tenants: document.tenants.map(|names| permitted(names, &path, tenants, faults)),
        weight: weight(document.weight, &path, faults),
        caps: caps.into_iter().map(|(cap, ..)| cap).collect(),
        default_priority,
        max_priority,
        max_queued: document.max_queued.map(|most| {
            if most.value == 0 {
                faults.add(&most.referenced, format!("{path}.maxQueued"), "it is at least 1: pause the queue instead");
            }
            most.value
        }),
        queue_timeout: document
            .queue_timeout
            .and_then(|text| time(&text, &format!("{path}.queueTimeout"), Duration::from_secs(1), faults)),
        dynamic_allocation: dynamic_allocation(document.dynamic_allocation, &path, faults),
        kueue: document.kueue.and_then(|text| kueue(&text, &path, faults)),
        name: name.value,
    }
}

fn permitted(names: Spanned<Vec<Text>>, path: &str, tenants: &[Tenant], faults: &mut Faults) -> Vec<String> {
    if names.value.is_empty() {
        faults.add(&names.referenced, format!("{path}.tenants"), "name a tenant, or leave it out to permit all");
    }
    let mut permitted: Vec<String> = Vec::new();
    for (index, name) in names.value.into_iter().enumerate() {
        let reason = if tenants.iter().all(|tenant| tenant.name != name.value) {
            "the file has no tenant of this name"
        } else if permitted.contains(&name.value) {
            "it is listed twice"
        } else {
            permitted.push(name.value);
            continue;
        };
        faults.add(&name.referenced, format!("{path}.tenants[{index}]"), reason);
    }
    permitted
}

fn weight(weight: Option<Spanned<u64>>, path: &str, faults: &mut Faults) -> u32 {
    let Some(weight) = weight else { return 1 };
    if !(1..=HEAVIEST).contains(&weight.value) {
        faults.add(&weight.referenced, format!("{path}.weight"), format!("a weight is from 1 to {HEAVIEST}"));
    }
    u32::try_from(weight.value).unwrap_or(1)
}

fn priority(document: PriorityDocument, path: &str, faults: &mut Faults) -> (i32, i32) {
    let mut of = |name: &str, number: &Option<Spanned<i64>>| {
        let number = number.as_ref()?;
        let priority = i32::try_from(number.value).ok().filter(|priority| PRIORITIES.contains(priority));
        if priority.is_none() {
            let reason = format!("a priority is from {} to {}", PRIORITIES.start(), PRIORITIES.end());
            faults.add(&number.referenced, format!("{path}.priority.{name}"), reason);
        }
        priority
    };
    let (default, max) = (of("default", &document.default), of("max", &document.max));
    if let (Some(first), Some(max), Some(text)) = (default, max, &document.default)
        && first > max
    {
        faults.add(&text.referenced, format!("{path}.priority.default"), format!("it is higher than `max`, {max}"));
    }
    let default = default.unwrap_or(*PRIORITIES.start());
    (default, max.unwrap_or(default))
}

fn dynamic_allocation(text: Option<Text>, path: &str, faults: &mut Faults) -> DynamicAllocation {
    let Some(text) = text else { return DynamicAllocation::default() };
    match text.value.as_str() {
        "maximum" => DynamicAllocation::Maximum,
        "running" => DynamicAllocation::Running,
        _ => {
            faults.add(&text.referenced, format!("{path}.dynamicAllocation"), "it is `maximum` or `running`");
            DynamicAllocation::default()
        }
    }
}

fn kueue(text: &Text, path: &str, faults: &mut Faults) -> Option<KueueQueue> {
    let queue = KueueQueue::parse(&text.value);
    if queue.is_none() {
        let form = "a LocalQueue is written like `batch`, or `batch:urgent` with a WorkloadPriorityClass";
        faults.add(&text.referenced, format!("{path}.kueue"), form);
    }
    queue
}

fn time(text: &Text, path: &str, least: Duration, faults: &mut Faults) -> Option<Duration> {
    let time = parse_duration(&text.value).filter(|time| *time >= least);
    if time.is_none() {
        faults.add(&text.referenced, path, "a time is written like `90s`, `10min` or `1h30m`");
    }
    time
}

/// Checks amounts. Each has its path and its text.
fn amounts(document: AmountsDocument, path: &str, faults: &mut Faults) -> Vec<((Resource, u64), String, Text)> {
    let AmountsDocument { submissions, pods, cores, memory, resources } = document;
    let common = [
        (Resource::Submissions, "submissions", submissions),
        (Resource::Pods, "pods", pods),
        (Resource::Cores, "cores", cores),
        (Resource::Memory, "memory", memory),
    ];
    let common =
        common.into_iter().filter_map(|(resource, name, text)| Some((resource, format!("{path}.{name}"), text?)));
    let mut all: Vec<_> = common.collect();
    for (name, text) in resources.unwrap_or(Entries(Vec::new())).0 {
        let at = format!("{path}.resources[{:?}]", name.value);
        if !name.value.contains('/') || name.value.len() > LONGEST_RESOURCE {
            faults.add(&name.referenced, &at, "an extended resource is named like `nvidia.com/gpu`");
        }
        all.push((Resource::Extended(name.value), at, text));
    }
    let check = |(resource, at, text): (Resource, String, Text)| match amount(&resource, &text.value) {
        Ok(amount) => Some(((resource, amount), at, text)),
        Err(reason) => {
            faults.add(&text.referenced, at, reason);
            None
        }
    };
    all.into_iter().filter_map(check).collect()
}

fn amount(resource: &Resource, text: &str) -> Result<u64, &'static str> {
    let quantity = || Quantity::parse(text).filter(|quantity| *quantity >= Quantity::ZERO);
    let number = || text.parse::<u64>().map_err(|_| "it is a whole number");
    let amount = match resource {
        Resource::Cores => {
            quantity().map(Quantity::millis).ok_or("cores are written like `40` or `500m`")?.unsigned_abs()
        }
        Resource::Memory => quantity().map(Quantity::units).ok_or("memory is written like `64Gi`")?.unsigned_abs(),
        Resource::Submissions | Resource::Pods | Resource::Extended(_) => number()?,
    };
    match amount == 0 && !matches!(resource, Resource::Extended(_)) {
        true => Err("nothing could run: give it more than 0, or pause the queue"),
        false => Ok(amount),
    }
}

/// Checks the default queue of a tenant, which must be one that the tenant may use. The only one of these is the default without being
/// named.
fn default_queue(tenant: &str, text: Option<&Text>, queues: &Queues, faults: &mut Faults) -> Option<String> {
    let names: Vec<&str> = queues.for_tenant(tenant).map(|queue| queue.name.as_str()).collect();
    let path = format!("tenants.{tenant}.defaultQueue");
    let Some(text) = text else {
        return match names.as_slice() {
            [] => None,
            [only] => Some((*only).to_owned()),
            several => {
                let names = several.join(", ");
                faults.add_without_place(path, format!("tenant {tenant} may use several queues: name one of {names}"));
                None
            }
        };
    };
    if !names.contains(&text.value.as_str()) {
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        faults.add(&text.referenced, path, format!("tenant {tenant} may not use this queue: it may use {names}"));
    }
    Some(text.value.clone())
}
