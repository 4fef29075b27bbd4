use std::time::Duration;

use sparkgate_submission::queues::{Amounts, Resource};

use super::{faults, parse};
use crate::queue::{DynamicAllocation, KueueQueue, Queues};

const FILE: &str = "
tenants:
  red: {namespaces: [red]}
  blue: {namespaces: [blue], defaultQueue: night}
  green: {namespaces: [green]}
capacity: {cores: 400, memory: 1600Gi, pods: 500, resources: {nvidia.com/gpu: 16}, reserveAfter: 2min}
queues:
  day:
    tenants: [red, blue]
    weight: 3
    caps: {submissions: 20, pods: 300, cores: 62.5, memory: 800Gi, resources: {nvidia.com/gpu: 0}}
    priority: {default: 10, max: 100}
    maxQueued: 1000
    queueTimeout: 12h
    dynamicAllocation: running
  night: {tenants: [blue], kueue: batch}
";

#[test]
fn queues_have_caps_weights_and_tenants() {
    let access = parse(FILE).unwrap();
    let queues = access.queues();
    assert_eq!(queues.reserve_after, Duration::from_secs(120));
    assert_eq!(queues.capacity.get(&Resource::Cores), Some(400_000));
    assert_eq!(queues.capacity.get(&Resource::Submissions), None);
    let day = queues.get("day").unwrap();
    assert_eq!((day.weight, day.default_priority, day.max_priority), (3, 10, 100));
    assert_eq!((day.max_queued, day.queue_timeout), (Some(1000), Some(Duration::from_secs(12 * 3600))));
    assert_eq!(day.dynamic_allocation, DynamicAllocation::Running);
    let caps =
        [Resource::Submissions, Resource::Cores, Resource::Memory, Resource::Extended("nvidia.com/gpu".to_owned())];
    assert_eq!(caps.map(|resource| day.caps.get(&resource)), [Some(20), Some(62_500), Some(800 << 30), Some(0)]);
    let night = queues.get("night").unwrap();
    assert_eq!((night.weight, night.default_priority, night.max_priority), (1, 0, 0));
    assert!(night.caps.is_empty());
    assert_eq!(day.kueue, None);
    assert_eq!(night.kueue, Some(KueueQueue { local_queue: "batch".to_owned(), priority_class: None }));
    let default = |tenant: &str| access.tenant(tenant).unwrap().default_queue.as_deref();
    assert_eq!(default("red"), Some("day"), "it may use no other");
    assert_eq!((default("blue"), default("green")), (Some("night"), None));
    assert_eq!(queues.for_tenant("blue").map(|queue| queue.name.as_str()).collect::<Vec<_>>(), ["day", "night"]);
}

#[test]
fn what_the_capacity_does_not_state_may_be_learned() {
    let file =
        |capacity: &str| format!("tenants: {{a: {{namespaces: [a]}}}}\nqueues: {{q: {{}}}}\ncapacity: {capacity}");
    let learned = Amounts::default().with(Resource::Cores, 9000).with(Resource::Pods, 7);
    let access = parse(&file("{fromResourceQuotas: true, cores: 4}")).unwrap();
    let expected = Amounts::default().with(Resource::Cores, 4000).with(Resource::Pods, 7);
    assert_eq!(access.queues().capacity_with(&learned), expected);
    let access = parse(&file("{cores: 4}")).unwrap();
    assert_eq!(access.queues().capacity_with(&learned), Amounts::default().with(Resource::Cores, 4000));
}

#[test]
fn a_file_without_queues_has_none() {
    let access = parse("tenants: {a: {namespaces: [a]}}").unwrap();
    assert_eq!(access.queues(), &Queues::default());
    assert_eq!(access.tenant("a").unwrap().default_queue, None);
}

#[test]
fn a_queue_of_kueue_may_have_a_priority_class() {
    let of = |text: &str| parse(&format!("tenants: {{a: {{namespaces: [a]}}}}\nqueues: {{q: {{kueue: {text}}}}}"));
    let urgent = KueueQueue { local_queue: "batch".to_owned(), priority_class: Some("urgent".to_owned()) };
    assert_eq!(of("batch:urgent").unwrap().queues().get("q").unwrap().kueue, Some(urgent));
    for wrong in ["''", "Batch", "a_b", "'batch:'", "':urgent'", "'a:b:c'", "-a"] {
        let faults = of(wrong).unwrap_err().to_string();
        let expected = "line 2, column 21: queues.q.kueue: a LocalQueue is written like `batch`";
        assert!(faults.contains(expected), "{wrong}: {faults}");
    }
}

#[test]
fn the_namespaces_of_queues_are_those_of_their_tenants() {
    let access = parse(FILE).unwrap();
    let all = ["red", "blue"].map(str::to_owned);
    assert_eq!(access.namespaces_of_queues(&[], |_| true), all.clone().into());
    assert_eq!(access.namespaces_of_queues(&[], |queue| queue.kueue.is_some()), all[1..].iter().cloned().collect());
    let of_one = parse("tenants: {a: {namespaces: ['*']}}\nqueues: {q: {}}").unwrap();
    assert_eq!(of_one.namespaces_of_queues(&all, |_| true), all.into());
}

#[test]
fn contradictions_are_reported_with_their_places() {
    let text = "
tenants:
  red: {namespaces: [red], defaultQueue: b}
  blue: {namespaces: [blue]}
capacity: {cores: 10, pods: 0, reserveAfter: soon}
queues:
  a: {tenants: [red, grey, red], weight: 0, caps: {cores: 20, memory: much}, queueTimeout: 0s}
  b: {tenants: [blue], priority: {default: 7, max: 5}, maxQueued: 0, dynamicAllocation: never}
  c: {caps: {resources: {gpu: 1}, submissions: 1.5}, priority: {max: 5000}}
  d_e: {tenants: []}
";
    assert_eq!(
        faults(text),
        [
            "tenants.blue.defaultQueue: tenant blue may use several queues: name one of b, c",
            "line 3, column 42: tenants.red.defaultQueue: tenant red may not use this queue: it may use a, c",
            "line 5, column 29: capacity.pods: nothing could run: give it more than 0, or pause the queue",
            "line 5, column 46: capacity.reserveAfter: a time is written like `90s`, `10min` or `1h30m`",
            "line 7, column 22: queues.a.tenants[1]: the file has no tenant of this name",
            "line 7, column 28: queues.a.tenants[2]: it is listed twice",
            "line 7, column 42: queues.a.weight: a weight is from 1 to 1000",
            "line 7, column 59: queues.a.caps.cores: it is more than the capacity of all queues, 10: lower it",
            "line 7, column 71: queues.a.caps.memory: memory is written like `64Gi`",
            "line 7, column 92: queues.a.queueTimeout: a time is written like `90s`, `10min` or `1h30m`",
            "line 8, column 44: queues.b.priority.default: it is higher than `max`, 5",
            "line 8, column 67: queues.b.maxQueued: it is at least 1: pause the queue instead",
            "line 8, column 89: queues.b.dynamicAllocation: it is `maximum` or `running`",
            "line 9, column 26: queues.c.caps.resources[\"gpu\"]: an extended resource is named like `nvidia.com/gpu`",
            "line 9, column 48: queues.c.caps.submissions: it is a whole number",
            "line 9, column 70: queues.c.priority.max: a priority is from 0 to 1000",
            "line 10, column 3: queues.d_e: a queue's name has up to 63 lower-case letters, digits and hyphens, and begins and ends \
             with a letter or a digit",
            "line 10, column 18: queues.d_e.tenants: name a tenant, or leave it out to permit all",
        ]
    );
    let alone = "tenants: {a: {namespaces: [a]}}\ncapacity: {cores: 1}";
    assert_eq!(faults(alone), ["line 2, column 11: capacity: queues share it, and there is none: add `queues`"]);
}

/// The page of the access file explains it.
#[test]
fn the_file_of_the_example_company_is_valid() {
    let file = include_str!("../../../../../deploy/access.company.yaml");
    let access = parse(file).unwrap();
    let queues = access.queues();
    let weights: Vec<_> = queues.iter().map(|queue| (queue.name.as_str(), queue.weight)).collect();
    assert_eq!(weights, [("backfill", 1), ("gpu", 1), ("interactive", 4), ("nightly", 3)]);
    let usable = |tenant: &str| queues.for_tenant(tenant).map(|queue| queue.name.clone()).collect::<Vec<_>>();
    assert_eq!(usable("research"), ["backfill", "gpu"]);
    assert_eq!(usable("finance"), ["backfill", "interactive", "nightly"]);
    let default = |tenant: &str| access.tenant(tenant).unwrap().default_queue.as_deref();
    assert_eq!((default("ingest"), default("research")), (Some("nightly"), Some("backfill")));
    let kueue = queues.get("gpu").unwrap().kueue.clone().unwrap();
    assert_eq!((kueue.local_queue.as_str(), kueue.priority_class.as_deref()), ("gpu", Some("spark-training")));
    assert_eq!(queues.capacity.get(&Resource::Extended("nvidia.com/gpu".to_owned())), None, "Kueue shares them");
}
