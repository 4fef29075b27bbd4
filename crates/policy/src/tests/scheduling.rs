//! Nodes, taints, priorities, and fields that a policy permits.

use serde_json::{Value, json};

use super::{Driver, template};

/// Asserts that a spec breaks a rule under one policy and passes under another, for drivers and for executors.
#[track_caller]
fn judged(spec: Value, refusing: Value, rule: &str, permitting: Value) {
    Driver::with_spec(spec.clone()).breaks(refusing.clone(), rule);
    Driver::with_executor_spec(spec.clone()).breaks(refusing, rule);
    Driver::build(&[], Some(template(spec.clone())), Some(template(spec))).passes(permitting);
}

#[test]
fn nodes_are_selected_by_permitted_labels() {
    let document = json!({ "nodeSelectors": ["pool=team", "zone"] });
    Driver::new(&[("spark.kubernetes.node.selector.pool", "team")]).passes(document.clone());
    Driver::new(&[("spark.kubernetes.executor.node.selector.zone", "a")]).passes(document.clone());
    for key in ["node.selector.pool", "driver.node.selector.pool", "executor.node.selector.pool"] {
        Driver::new(&[(&format!("spark.kubernetes.{key}"), "other")]).breaks(document.clone(), "nodeSelectors");
    }
    let affinity = |operator: &str, values: Value| {
        let term = json!({ "matchExpressions": [{ "key": "pool", "operator": operator, "values": values }] });
        json!({ "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [term] },
            "preferredDuringSchedulingIgnoredDuringExecution": [{ "weight": 1, "preference": term }]
        } } })
    };
    judged(affinity("In", json!(["other"])), document.clone(), "nodeSelectors", json!({}));
    judged(affinity("In", json!(["team", "other"])), document.clone(), "nodeSelectors", json!({}));
    judged(affinity("NotIn", json!(["team"])), document.clone(), "nodeSelectors", json!({}));
    judged(affinity("Exists", json!([])), document.clone(), "nodeSelectors", json!({}));
    Driver::with_spec(affinity("In", json!(["team"]))).passes(document);
    let fields = json!({ "affinity": { "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchFields": [{ "key": "metadata.name", "operator": "In", "values": ["control-plane"] }] }
        ] }
    } } });
    Driver::with_spec(fields).breaks(json!({}), "structure");
}

#[test]
fn taints_are_tolerated_by_permitted_keys() {
    let toleration = |toleration: Value| json!({ "tolerations": [toleration] });
    let all = toleration(json!({ "operator": "Exists" }));
    judged(all.clone(), json!({}), "tolerations", json!({ "tolerations": ["*"] }));
    judged(all, json!({ "tolerations": ["team"] }), "tolerations", json!({ "tolerations": ["**"] }));
    let team = toleration(json!({ "key": "team", "operator": "Exists", "effect": "NoSchedule" }));
    judged(team.clone(), json!({ "tolerations": ["other"] }), "tolerations", json!({ "tolerations": ["team"] }));
    judged(team, json!({ "tolerations": [] }), "tolerations", json!({}));
    let empty = toleration(json!({ "key": "", "operator": "Exists" }));
    judged(empty, json!({}), "tolerations", json!({ "tolerations": ["*"] }));
}

#[test]
fn classes_and_schedulers_are_permitted_by_name() {
    let name = |field: &str, name: &str| json!({ field: name });
    judged(name("priorityClassName", "urgent"), json!({ "priorityClasses": ["batch"] }), "priorityClasses", json!({}));
    let system = name("priorityClassName", "system-node-critical");
    judged(system, json!({}), "priorityClasses", json!({ "priorityClasses": ["system-*"] }));
    Driver::with_spec(json!({ "priority": 1 })).breaks(json!({ "priorityClasses": ["**"] }), "priorityClasses");
    judged(name("runtimeClassName", "kata"), json!({ "runtimeClasses": ["runc"] }), "runtimeClasses", json!({}));
    judged(name("schedulerName", "own"), json!({ "schedulers": ["volcano"] }), "schedulers", json!({}));
    let property = ("spark.kubernetes.executor.scheduler.name", "own");
    Driver::new(&[property]).breaks(json!({ "schedulers": ["volcano"] }), "schedulers");
    let preempts = name("preemptionPolicy", "PreemptLowerPriority");
    judged(preempts, json!({ "preemption": false }), "preemption", json!({}));
}

#[test]
fn fields_that_a_policy_permits_or_not() {
    for (spec, rule, by_default) in [
        (
            json!({ "affinity": { "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{ "topologyKey": "a" }] } } }),
            "affinity",
            true,
        ),
        (json!({ "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": "a" }] }), "topologySpread", true),
        (json!({ "shareProcessNamespace": true }), "shareProcessNamespace", false),
        (json!({ "hostAliases": [{ "ip": "1.2.3.4", "hostnames": ["a"] }] }), "hostAliases", false),
        (json!({ "dnsPolicy": "None" }), "dns", false),
        (json!({ "dnsConfig": { "nameservers": ["1.2.3.4"] } }), "dns", false),
        (json!({ "resourceClaims": [{ "name": "a" }] }), "resourceClaims", false),
    ] {
        judged(spec.clone(), json!({ rule: false }), rule, json!({ rule: true }));
        match by_default {
            true => Driver::with_spec(spec).passes(json!({})),
            false => Driver::with_spec(spec).breaks(json!({}), rule),
        }
    }
    Driver::with_spec(json!({ "shareProcessNamespace": false, "hostAliases": [], "dnsPolicy": "ClusterFirst" }))
        .passes(json!({}));
}

#[test]
fn pods_join_queues_of_kueue_where_the_policy_names_it() {
    const QUEUE: &str = "spark.kubernetes.driver.label.kueue.x-k8s.io/queue-name";
    const EXECUTORS: &str = "spark.kubernetes.executor.label.kueue.x-k8s.io";
    let of_executors = [
        (format!("{EXECUTORS}/queue-name"), "team-a"),
        (format!("{EXECUTORS}/managed"), "true"),
        ("spark.kubernetes.executor.annotation.kueue.x-k8s.io/pod-suspending-parent".to_owned(), "spark"),
    ];
    let mut properties: Vec<_> = of_executors.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    properties.extend([(QUEUE, "team-a"), ("spark.kubernetes.driver.label.kueue.x-k8s.io/priority-class", "batch")]);
    let driver = Driver::new(&properties);
    let named = |more: Value| {
        let mut policy = json!({ "schedulers": ["kueue"] });
        policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        policy
    };
    driver.passes(named(json!({})));
    driver
        .passes(named(json!({ "queues": ["team-*"], "labels": { "allow": ["team"] }, "priorityClasses": ["batch"] })));
    driver.breaks(named(json!({ "queues": ["other"] })), "queues");
    driver.breaks(named(json!({ "priorityClasses": ["other"] })), "priorityClasses");
    driver.breaks(named(json!({ "labels": { "deny": ["kueue.x-k8s.io/*"] } })), "labels");
    let listed = json!({ "allow": ["team"] });
    for schedulers in [json!(null), json!(["*"]), json!(["volcano"])] {
        driver.breaks(json!({ "schedulers": schedulers, "labels": listed }), "labels");
    }
    let group = "spark.kubernetes.driver.label.kueue.x-k8s.io/pod-group-name";
    Driver::new(&[(group, "a")]).breaks(named(json!({ "labels": listed })), "labels");
    Driver::new(&[(&format!("{EXECUTORS}/managed"), "false")]).breaks(named(json!({})), "labels");
    let gate = json!([{ "name": "kueue.x-k8s.io/admission" }]);
    Driver::new(&[]).set("/spec/schedulingGates", gate).breaks(named(json!({})), "structure");
}
