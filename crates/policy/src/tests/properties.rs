//! Properties by their classes, inline secrets, and the operator's own rules.

use serde_json::{Value, json};

use super::{Driver, faults};

fn with(key: &str, value: &str) -> Driver {
    let mut driver = Driver::new(&[]);
    driver.properties.insert(key.to_owned(), value.to_owned());
    driver
}

const OPERATORS: [&str; 10] = [
    "spark.plugins",
    "spark.extraListeners",
    "spark.driver.extraJavaOptions",
    "spark.executor.extraClassPath",
    "spark.redaction.regex",
    "spark.ui.filters",
    "spark.authenticate.secret",
    "spark.kubernetes.executor.pod.featureSteps",
    "spark.kubernetes.driver.pod.excludedFeatureSteps",
    "spark.kubernetes.allocation.pods.allocator",
];

#[test]
fn only_the_operator_sets_properties_that_load_code_or_lift_protection() {
    for key in OPERATORS {
        let mut driver = with(key, "a");
        assert_eq!(driver.violations(json!({})), [format!("properties sparkProperties[\"{key}\"]")]);
        driver.passes(json!({ "properties": { "allow": [key] } }));
        driver.origins.insert(key.to_owned(), "defaults/base.conf".to_owned());
        driver.passes(json!({}));
    }
}

#[test]
fn an_unknown_property_of_kubernetes_is_refused() {
    for key in [
        "spark.kubernetes.newFeature",
        "spark.kubernetes.executor.podTemplate",
        "spark.kubernetes.executor.container.image ",
        "spark.kubernetes.Executor.label.a",
        "spark.kubernetes.",
    ] {
        with(key, "a").breaks(json!({}), "properties");
    }
    with("spark.sql.shuffle.partitions", "10").passes(json!({}));
    with("spark.hadoop.fs.s3a.endpoint", "a").passes(json!({}));
}

#[test]
fn the_operator_refuses_properties_that_are_otherwise_free() {
    let document = json!({ "properties": { "deny": ["spark.sql.*"] } });
    let mut driver = with("spark.sql.shuffle.partitions", "10");
    driver.breaks(document.clone(), "properties");
    driver.origins.insert("spark.sql.shuffle.partitions".to_owned(), "base".to_owned());
    driver.passes(document);
}

#[test]
fn what_no_one_may_set_can_not_be_allowed() {
    let document = json!({ "properties": { "allow": ["**"] } });
    with("spark.remote", "sc://a").breaks(document.clone(), "properties");
    with("spark.kubernetes.authenticate.oauthToken", "a").breaks(document.clone(), "credentials");
    with("spark.kubernetes.executor.volumes.hostPath.a.options.path", "/").breaks(document.clone(), "podSecurity");
    let mut namespace = Driver::new(&[("spark.kubernetes.namespace", "jobs")]);
    namespace.properties.insert("spark.kubernetes.namespace".to_owned(), "kube-system".to_owned());
    namespace.breaks(document, "structure");
}

#[test]
fn credentials_for_the_api_need_permission() {
    for key in [
        "spark.kubernetes.authenticate.driver.oauthToken",
        "spark.kubernetes.authenticate.driver.mounted.oauthTokenFile",
        "spark.kubernetes.authenticate.caCertFile",
        "spark.kubernetes.authenticate.newKey",
    ] {
        let mut driver = with(key, "/a");
        driver.breaks(json!({}), "credentials");
        driver.passes(json!({ "credentials": true }));
        driver.origins.insert(key.to_owned(), "base".to_owned());
        driver.passes(json!({}));
    }
}

#[test]
fn secrets_as_plain_text_are_refused_where_the_policy_says_so() {
    let forbid = json!({ "inlineSecrets": "forbid" });
    for (key, value) in [
        ("spark.hadoop.fs.s3a.secret.key", "abc"),
        ("spark.hadoop.fs.s3a.access.key", "abc"),
        ("spark.my.PASSWORD", "abc"),
        ("spark.sql.url", "jdbc:x?password=abc"),
        ("spark.executorEnv.API_TOKEN", "abc"),
    ] {
        with(key, value).breaks(forbid.clone(), "inlineSecrets");
        with(key, value).passes(json!({}));
        with(key, "").passes(forbid.clone());
    }
    Driver::new(&[("spark.kubernetes.driverEnv.DB_PASSWORD", "abc")]).breaks(forbid.clone(), "inlineSecrets");
    Driver::new(&[
        ("spark.kubernetes.driver.secretKeyRef.DB_PASSWORD", "db:password"),
        ("spark.kubernetes.driver.secrets.db", "/mnt/secrets"),
        ("spark.kubernetes.kerberos.tokenSecret.name", "tokens"),
        ("spark.kubernetes.kerberos.tokenSecret.itemKey", "a"),
    ])
    .passes(forbid);
}

fn rule(expression: &str) -> Value {
    json!({ "cel": [{ "name": "own", "expression": expression, "message": "no" }] })
}

#[test]
fn a_rule_of_the_operator_must_be_true() {
    let driver = Driver::new(&[("spark.kubernetes.driver.label.team", "a")]);
    for expression in [
        "pod.metadata.labels.team == 'a'",
        "pod.spec.containers.all(c, c.image.startsWith('registry.example.org/'))",
        "executor.spec.containers.exists(c, c.name == 'spark-kubernetes-executor')",
        "executorTemplate == null",
        "objects.filter(o, o.kind == 'Service').size() == 1",
        "!('spark.plugins' in properties)",
        "properties['spark.app.name'] != ''",
        "pod.metadata.labels.team.matches('^[a-z]$')",
        "type(pod) == map",
    ] {
        driver.passes(rule(expression));
    }
    assert_eq!(driver.violations(rule("pod.metadata.labels.team == 'b'")), ["cel:own Pod"]);
}

#[test]
fn a_rule_that_can_not_be_evaluated_is_broken() {
    let driver = Driver::new(&[]);
    for expression in [
        "pod.metadata.labels.team == 'a'",
        "pod.spec.containers[7].image == 'a'",
        "pod",
        "1",
        "unknownFunction(pod)",
        "pod.metadata.name + 1 == 2",
        "1 / 0 == 1",
    ] {
        let violations = driver.judge(&super::policy(rule(expression)));
        assert_eq!(violations.len(), 1, "{expression}");
        assert!(violations[0].message.contains("could not be evaluated"), "{violations:?}");
    }
    assert_eq!(faults(rule("pods.size() == 1")), ["cel[0].expression"]);
}

#[test]
fn a_rule_that_would_take_too_long_on_a_driver_refuses_it() {
    let unused = "pod.spec.volumes.all(v, pod.spec.containers.exists(c, c.volumeMounts.exists(m, m.name == v.name)))";
    let driver = |count: usize| {
        let volumes: Vec<Value> = (0..count).map(|at| json!({ "name": format!("v{at}"), "emptyDir": {} })).collect();
        let mount = |at| json!({ "name": format!("v{at}"), "mountPath": format!("/v{at}") });
        let mounts: Vec<Value> = (0..count).map(mount).collect();
        Driver::with_spec(json!({ "volumes": volumes, "containers": [{ "volumeMounts": mounts }] }))
    };
    driver(50).passes(rule(unused));
    let violations = driver(900).judge(&super::policy(rule(unused)));
    let [violation] = &violations[..] else { panic!("{violations:?}") };
    assert_eq!(violation.rule, "cel:own");
    assert!(violation.message.contains("shorten the lists that it loops over"), "{}", violation.message);
    // All rules share the steps: as many as are cheap one by one are not, together.
    let mut many = rule(unused);
    many["cel"] = json!(vec![many["cel"][0].clone(); 50]);
    let violations = driver(150).judge(&super::policy(many));
    assert!(!violations.is_empty());
    driver(150).passes(rule(unused));
}

#[test]
fn the_example_of_the_documentation_permits_a_usual_driver() {
    let page = include_str!("../../../../docs/operate/policy.md");
    let yaml = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let document: Value = serde_saphyr::from_str(yaml).unwrap();
    let driver = |team: &str| {
        Driver::new(&[
            ("spark.kubernetes.container.image", "registry.example.org/analytics/spark:4.1.0"),
            ("spark.kubernetes.driver.label.team", team),
            ("spark.executor.instances", "2"),
        ])
    };
    driver("analytics").passes(document["policy"].clone());
    driver("other").breaks(document["policy"].clone(), "cel:owner");
}
