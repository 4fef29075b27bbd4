//! The executors' pod: the template, and what Spark overrides in it.

use serde_json::json;

use super::{Driver, template};

#[test]
fn a_template_is_judged_in_all_of_its_fields() {
    for (spec, rule) in [
        (json!({ "nodeName": "a" }), "structure"),
        (json!({ "schedulingGates": [{ "name": "a" }] }), "structure"),
        (json!({ "overhead": { "cpu": "1" } }), "structure"),
        (json!({ "newField": true }), "unclassifiedField"),
        (json!({ "hostNetwork": "true" }), "unclassifiedField"),
        (json!({ "containers": [{ "name": "a", "securityContext": { "runAsUser": "0" } }] }), "unclassifiedField"),
        (json!({ "shareProcessNamespace": true }), "shareProcessNamespace"),
    ] {
        let mut driver = Driver::new(&[]);
        driver.executor_template = Some(template(spec));
        driver.breaks(json!({}), rule);
    }
    let mut driver = Driver::new(&[]);
    driver.executor_template = Some(json!({ "metadata": { "ownerReferences": [{ "name": "a" }] }, "spec": {} }));
    driver.breaks(json!({}), "structure");
    for odd in [json!([]), json!("text"), json!({ "spec": [] }), json!({ "spec": { "containers": {} } })] {
        let mut driver = Driver::new(&[]);
        driver.executor_template = Some(odd.clone());
        // What isn't an object has no fields: the driver can't read it either.
        let violations = driver.violations(json!({}));
        assert!(odd.is_array() || odd.is_string() || !violations.is_empty(), "{odd}");
    }
}

#[test]
fn the_named_container_of_a_template_is_the_executor() {
    let spec = json!({ "containers": [{ "name": "side", "image": "evil" }, { "name": "main", "image": "any" }] });
    let name = ("spark.kubernetes.executor.podTemplateContainerName", "main");
    let driver = Driver::build(&[name], None, Some(template(spec)));
    let document = json!({ "images": ["registry.example.org/team/*"] });
    assert_eq!(driver.violations(document), ["images Executor/spec/containers/0/image"], "the sidecar");
}

#[test]
fn a_template_that_was_not_given_is_a_violation() {
    let mut driver = Driver::with_executor_spec(json!({}));
    driver.passes(json!({}));
    driver.executor_template = None;
    driver.breaks(json!({}), "structure");
    // The map alone is enough, whatever the properties say.
    driver.properties.remove("spark.kubernetes.executor.podTemplateFile");
    driver.breaks(json!({}), "structure");
}

#[test]
fn labels_of_executors_are_reserved_as_those_of_drivers() {
    for (key, rule) in [
        ("spark.kubernetes.executor.label.sparkgate.dev/instance", "labels"),
        ("spark.kubernetes.executor.label.spark-role", "labels"),
        ("spark.kubernetes.executor.decommissionLabel", "labels"),
        ("spark.kubernetes.executor.annotation.sparkgate.dev/identity", "annotations"),
    ] {
        let mut driver = Driver::new(&[]);
        driver.properties.insert(key.to_owned(), "sparkgate.dev/attempt".to_owned());
        driver.breaks(json!({}), rule);
    }
}

#[test]
fn a_value_that_the_driver_would_substitute_is_refused() {
    for key in ["spark.kubernetes.executor.container.image", "spark.executor.memory", "spark.dynamicAllocation.enabled"]
    {
        let mut driver = Driver::new(&[]);
        driver.properties.insert(key.to_owned(), "${env:VALUE}".to_owned());
        assert!(!driver.violations(json!({})).is_empty(), "{key}");
    }
}
