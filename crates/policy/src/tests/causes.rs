//! The causes of violations.

use serde_json::{Value, json};

use super::{Driver, policy, template};

#[track_caller]
fn cause(driver: &Driver, document: Value) -> Option<String> {
    let violations = driver.judge(&policy(document));
    violations.into_iter().next().expect("a violation").cause
}

#[test]
fn a_value_comes_from_the_property_that_spark_reads() {
    let none = json!({
        "images": ["x"], "secrets": [], "configMaps": [], "nodeSelectors": [], "schedulers": [], "claims": [],
        "labels": { "deny": ["**"] }, "annotations": { "deny": ["**"] }, "inlineSecrets": "forbid",
        "limits": { "driver": { "cores": 1, "memory": "1Gi" }, "executor": { "cores": 1, "memory": "1Gi" } }
    });
    let only = |rule: &str| json!({ rule: none[rule] });
    for (rule, key, value) in [
        ("images", "spark.kubernetes.container.image", "evil"),
        ("images", "spark.kubernetes.driver.container.image", "evil"),
        ("secrets", "spark.kubernetes.driver.secrets.db", "/mnt"),
        ("secrets", "spark.kubernetes.driver.secretKeyRef.A", "db:key"),
        ("secrets", "spark.kubernetes.executor.secretKeyRef.A", "db:key"),
        ("secrets", "spark.kubernetes.container.image.pullSecrets", "a"),
        ("configMaps", "spark.kubernetes.hadoop.configMapName", "a"),
        ("nodeSelectors", "spark.kubernetes.node.selector.a", "b"),
        ("nodeSelectors", "spark.kubernetes.driver.node.selector.a", "b"),
        ("nodeSelectors", "spark.kubernetes.executor.node.selector.a", "b"),
        ("schedulers", "spark.kubernetes.scheduler.name", "a"),
        ("labels", "spark.kubernetes.driver.label.a", "b"),
        ("labels", "spark.kubernetes.executor.label.a", "b"),
        ("annotations", "spark.kubernetes.driver.service.annotation.a", "b"),
        ("inlineSecrets", "spark.kubernetes.driverEnv.A_TOKEN", "b"),
        ("limits", "spark.driver.cores", "4"),
    ] {
        let limits = json!({ "limits": { "driver": { "cores": 2 } } });
        let document = if rule == "limits" { limits } else { only(rule) };
        assert_eq!(cause(&Driver::new(&[(key, value)]), document), Some(format!("sparkProperties[\"{key}\"]")));
    }
    let claim = "spark.kubernetes.driver.volumes.persistentVolumeClaim.v";
    let driver = Driver::new(&[(&format!("{claim}.mount.path"), "/v"), (&format!("{claim}.options.claimName"), "a")]);
    assert_eq!(cause(&driver, only("claims")), Some(format!("sparkProperties[\"{claim}.options.claimName\"]")));
}

#[test]
fn an_operators_default_is_named() {
    let key = "spark.kubernetes.container.image";
    let mut driver = Driver::new(&[]);
    driver.origins.insert(key.to_owned(), "base".to_owned());
    let expected = format!("sparkProperties[\"{key}\"] (the operator's default: base)");
    assert_eq!(cause(&driver, json!({ "images": ["x"] })), Some(expected));
}

#[test]
fn a_value_of_a_template_is_found_by_the_name_of_its_element() {
    let spec = json!({
        "containers": [{ "name": "main" }, { "name": "side", "image": "evil" }],
        "tolerations": [{ "key": "a" }, { "operator": "Exists" }],
        "hostNetwork": true
    });
    let driver = Driver::with_spec(spec.clone());
    assert_eq!(cause(&driver, json!({})).as_deref(), Some("driverPodTemplate/spec/hostNetwork"));
    let privileged = |rule: &str, value: Value| json!({ "podSecurity": "privileged", rule: value });
    let images = driver.judge(&policy(privileged("images", json!(["registry.example.org/**"]))));
    assert_eq!(images[0].path, "Pod/spec/containers/0/image", "Spark moves its own container to the end");
    assert_eq!(images[0].cause.as_deref(), Some("driverPodTemplate/spec/containers/1/image"));
    let executor = Driver::build(&[], None, Some(template(spec)));
    assert_eq!(cause(&executor, json!({})).as_deref(), Some("executorPodTemplate/spec/hostNetwork"));
    let tolerations = driver.judge(&policy(json!({ "podSecurity": "privileged" })));
    assert_eq!(tolerations[0].path, "Pod/spec/tolerations/1/key");
    assert_eq!(tolerations[0].cause, None, "the key is absent in the template, too");
}

#[test]
fn a_violation_is_one_sentence() {
    let driver = Driver::new(&[("spark.kubernetes.driver.label.sparkgate.dev/x", "a")]);
    let violations = driver.judge(&policy(json!({})));
    assert_eq!(
        violations[0].to_string(),
        "labels: Pod/metadata/labels/sparkgate.dev~1x: the key is reserved for the gateway (from \
         sparkProperties[\"spark.kubernetes.driver.label.sparkgate.dev/x\"])"
    );
}
