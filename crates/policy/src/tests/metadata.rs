//! Metadata of all objects: structure, labels, annotations.

use serde_json::{Value, json};

use super::{Driver, template};

#[test]
fn fields_that_others_set_are_refused_in_each_object() {
    for (field, value) in [
        ("generateName", json!("a-")),
        ("ownerReferences", json!([{ "name": "a", "uid": "1", "kind": "Pod", "apiVersion": "v1" }])),
        ("finalizers", json!(["a/b"])),
        ("namespace", json!("kube-system")),
        ("uid", json!("1")),
        ("resourceVersion", json!("1")),
        ("deletionTimestamp", json!("2026-01-01T00:00:00Z")),
    ] {
        for kind in ["Pod", "Service", "ConfigMap", "NetworkPolicy"] {
            let mut driver = Driver::new(&[("spark.kubernetes.namespace", "jobs")]);
            driver.object(kind)["metadata"][field] = value.clone();
            driver.breaks(json!({ "podSecurity": "privileged" }), "structure");
        }
    }
}

#[test]
fn a_driver_may_be_owned_by_an_application_of_kubeflows_operator() {
    let owner = |kind: &str, version: &str| json!([{ "name": "a", "uid": "1", "kind": kind, "apiVersion": version }]);
    let with = |kind: &str, owners: Value| {
        let mut driver = Driver::new(&[("spark.kubernetes.driver.label.sparkoperator.k8s.io/app-name", "a")]);
        driver.object(kind)["metadata"]["ownerReferences"] = owners;
        driver.of_operator = true;
        driver
    };
    let ours = || owner("SparkApplication", "sparkoperator.k8s.io/v1beta2");
    with("Pod", ours()).passes(json!({}));
    with("ConfigMap", ours()).breaks(json!({}), "structure");
    for other in [owner("SparkApplication", "v1"), owner("Pod", "sparkoperator.k8s.io/v1beta2"), json!({ "name": "a" })]
    {
        with("Pod", other).breaks(json!({}), "structure");
    }
    let mut two = ours();
    two.as_array_mut().unwrap().extend(owner("ReplicaSet", "apps/v1").as_array().unwrap().clone());
    with("Pod", two).breaks(json!({}), "structure");
}

#[test]
fn reserved_keys_are_refused_whatever_the_policy_permits() {
    for key in [
        "sparkgate.dev/instance",
        "sparkgate.dev/new",
        "a.sparkgate.dev/x",
        "pod-security.kubernetes.io/enforce",
        "kubernetes.io/hostname",
        "node.kubernetes.io/x",
        "batch.kubernetes.io/job-name",
        "security.alpha.k8s.io/x",
        "k8s.io/x",
    ] {
        for field in ["labels", "annotations"] {
            let driver = Driver::build(
                &[],
                Some(json!({ "metadata": { field: { key: "a" } }, "spec": { "containers": [{ "name": "main" }] } })),
                None,
            );
            driver.breaks(json!({ field: { "allow": ["**"] } }), field);
        }
    }
}

#[test]
fn keys_that_describe_a_job_are_permitted() {
    Driver::new(&[
        ("spark.kubernetes.driver.label.app.kubernetes.io/version", "1"),
        ("spark.kubernetes.driver.annotation.app.kubernetes.io/name", "pi"),
        ("spark.kubernetes.driver.label.team", "a"),
        ("spark.kubernetes.driver.annotation.cluster-autoscaler.kubernetes.io/safe-to-evict", "false"),
        ("spark.kubernetes.driver.annotation.prometheus.io/scrape", "true"),
        ("spark.kubernetes.executor.label.notkubernetes.io/x", "a"),
    ])
    .passes(json!({}));
}

#[test]
fn the_operator_permits_and_refuses_keys() {
    let label = ("spark.kubernetes.driver.label.app", "frontend");
    Driver::new(&[label]).breaks(json!({ "labels": { "deny": ["app"] } }), "labels");
    Driver::new(&[label]).breaks(json!({ "labels": { "allow": ["team.example.org/*"] } }), "labels");
    let own = ("spark.kubernetes.driver.label.team.example.org/app", "a");
    Driver::new(&[own]).passes(json!({ "labels": { "allow": ["team.example.org/*"] } }));
    let annotation = ("spark.kubernetes.driver.service.annotation.external-dns/hostname", "a");
    Driver::new(&[annotation]).breaks(json!({ "annotations": { "deny": ["external-dns/*"] } }), "annotations");
}

#[test]
fn sparks_own_labels_have_sparks_values() {
    let other = Driver::new(&[]).set("/metadata/labels/spark-role", json!("executor"));
    assert_eq!(other.violations(json!({})), ["labels Pod/metadata/labels/spark-role"]);
    let other = Driver::new(&[]).set("/metadata/labels/spark-app-selector", json!("spark-other"));
    other.breaks(json!({}), "labels");
    let key = "spark.kubernetes.driver.service.label.spark-app-selector";
    Driver::new(&[(key, "spark-other")]).breaks(json!({}), "labels");
    let group = ("spark.kubernetes.driver.annotation.scheduling.k8s.io/group-name", "other");
    Driver::new(&[group]).breaks(json!({}), "annotations");
}

#[test]
fn an_unknown_field_of_any_depth_is_refused() {
    for (pointer, value) in [
        ("/spec/newField", json!(1)),
        ("/spec/containers/0/newField", json!(1)),
        ("/spec/containers/0/resources/newField", json!(1)),
        ("/spec/volumes/0/newVolume", json!({})),
        ("/metadata/newField", json!(1)),
        ("/spec/containers/0/securityContext/newField", json!(true)),
        ("/spec/hostNetwork", json!("true")),
        ("/spec/containers", json!({})),
        ("/spec/volumes/0", json!("text")),
    ] {
        Driver::new(&[]).set(pointer, value).breaks(json!({ "podSecurity": "privileged" }), "unclassifiedField");
    }
    Driver::new(&[]).set("/spec/newField", Value::Null).passes(json!({}));
}

#[test]
fn structure_is_kept_at_each_level() {
    for (pointer, value) in [
        ("/spec/nodeName", json!("control-plane")),
        ("/spec/overhead", json!({ "cpu": "1" })),
        ("/spec/schedulingGates", json!([{ "name": "a" }])),
        ("/spec/schedulingGroup", json!({ "podGroupName": "a" })),
        ("/spec/ephemeralContainers", json!([{ "name": "a" }])),
        ("/status", json!({ "phase": "Succeeded" })),
        ("/apiVersion", json!("v2")),
    ] {
        let mut driver = Driver::new(&[]);
        driver.object("Pod")["status"] = Value::Null;
        driver.set(pointer, value).breaks(json!({ "podSecurity": "privileged" }), "structure");
    }
}

#[test]
fn a_hardened_template_passes() {
    let spec = json!({ "hostUsers": false, "setHostnameAsFQDN": true, "hostname": "a", "subdomain": "b" });
    Driver::build(&[], Some(template(spec.clone())), Some(template(spec))).passes(json!({}));
}

#[test]
fn a_job_is_no_part_of_another_application() {
    for key in crate::IDENTITY_LABELS {
        for role in ["driver", "executor", "driver.service"] {
            let property = format!("spark.kubernetes.{role}.label.{key}");
            let driver = Driver::new(&[(&property, "prometheus")]);
            driver.breaks(json!({}), "labels");
            driver.passes(json!({ "labels": { "allow": ["*", "app.kubernetes.io/*"] } }));
        }
    }
}

#[test]
fn only_kubeflows_operator_sets_its_labels() {
    for key in ["driver.label", "driver.annotation", "executor.label"] {
        let property = format!("spark.kubernetes.{key}.sparkoperator.k8s.io/app-name");
        let mut driver = Driver::new(&[(&property, "another")]);
        let rule = if key.ends_with("label") { "labels" } else { "annotations" };
        driver.breaks(json!({ rule: { "allow": ["**"] } }), rule);
        driver.of_operator = true;
        driver.passes(json!({}));
    }
}
