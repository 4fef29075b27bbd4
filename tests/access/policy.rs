//! The policy of a tenant judges each driver before anything of it is stored.

use serde_json::{Value, json};
use sparkgate::access::Role;
use sqlx::PgPool;

use crate::world::{World, job, spark_job};

const FILE: &str = "
authentication: {}
tenants:
  red:
    namespaces: [red]
    serviceAccounts: [spark]
    defaults: {spark.kubernetes.authenticate.driver.serviceAccountName: spark}
    policy:
      images: [\"registry.example.org/red/**\", spark]
      limits: {executors: 10, driver: {cores: 4, memory: 8Gi}}
limits: {writes: 100000/s, reads: 100000/s}
";

fn rules(answer: &Value) -> Vec<&str> {
    answer["violations"].as_array().unwrap().iter().map(|violation| violation["rule"].as_str().unwrap()).collect()
}

#[sqlx::test]
async fn a_driver_within_the_policy_is_accepted_and_one_outside_is_not_stored(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let key = world.key(Role::Operator, Some("red")).await;
    world.submit(&key, "red").await;
    let mut body = job("red");
    let properties = body["sparkProperties"].as_object_mut().unwrap();
    properties.insert("spark.kubernetes.container.image".to_owned(), json!("evil.example.org/miner"));
    properties.insert("spark.executor.instances".to_owned(), json!("11"));
    properties.insert("spark.kubernetes.driver.volumes.hostPath.host.mount.path".to_owned(), json!("/host"));
    properties.insert("spark.kubernetes.driver.volumes.hostPath.host.options.path".to_owned(), json!("/"));
    body["driverPodTemplate"] = json!({
        "spec": {"hostNetwork": true, "containers": [{"name": "driver"}], "initContainers": [
            {"name": "first", "image": "spark", "securityContext": {"privileged": true}},
        ]},
        "metadata": {"finalizers": ["example.org/hold"]},
    });
    for path in ["/v1/submissions", "/v1/submissions?dryRun=true"] {
        let refused = world.send(Some(&key), "POST", path, Some(&body)).await;
        assert_eq!(refused.status, 422, "{refused:?}");
        let problem = refused.json();
        assert_eq!(problem["code"], "policy-violated");
        let violations = problem["violations"].as_array().unwrap();
        let has = |path: &str, cause: &str| {
            violations.iter().any(|violation| {
                violation["path"].as_str().unwrap().contains(path)
                    && violation["cause"].as_str().unwrap_or_default().contains(cause)
            })
        };
        for (path, cause) in [
            ("Pod/spec/containers/0/image", "spark.kubernetes.container.image"),
            ("Pod/spec/hostNetwork", "driverPodTemplate/spec/hostNetwork"),
            ("Pod/spec/initContainers/0/securityContext/privileged", "driverPodTemplate"),
            ("Pod/metadata/finalizers", "driverPodTemplate/metadata/finalizers"),
            ("Pod/spec/volumes/", "spark.kubernetes.driver.volumes.hostPath.host"),
            ("", "spark.executor.instances"),
        ] {
            assert!(has(path, cause), "{path} {cause}: {violations:#?}");
        }
    }
    let mut body = spark_job("red");
    body["sparkProperties"]["spark.kubernetes.container.image"] = json!("evil.example.org/miner");
    let refused = world.send(Some(&key), "POST", "/v1/submissions/create", Some(&body)).await;
    assert!(refused.status == 422 && refused.body.contains("images: Pod/spec/containers/0/image"), "{refused:?}");
    assert_eq!(world.get(&key, "/v1/submissions?total=true").await.json()["total"], 1);
    let audit = world.get(&key, "/v1/audit").await.json();
    let verdicts: Vec<_> = audit["entries"].as_array().unwrap().iter().map(|entry| entry["verdict"].clone()).collect();
    assert_eq!(verdicts, ["allowed", "denied", "denied"], "a dry run asks for nothing: {audit}");
}

#[sqlx::test]
async fn a_tenant_without_a_policy_has_the_default_one(pool: PgPool) {
    let world = World::new(pool, "authentication: {}\ntenants: {red: {namespaces: [red]}}\n").await;
    let key = world.key(Role::Submitter, Some("red")).await;
    let mut body = job("red");
    body["driverPodTemplate"] = json!({"spec": {"hostPID": true, "containers": [{"name": "driver"}]}});
    let refused = world.send(Some(&key), "POST", "/v1/submissions", Some(&body)).await;
    assert_eq!((refused.status, rules(&refused.json())), (422, vec!["podSecurity"]), "{refused:?}");
}

#[sqlx::test]
async fn the_executor_template_that_is_judged_is_the_one_that_the_driver_reads(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let key = world.key(Role::Submitter, Some("red")).await;
    let mut body = job("red");
    // Two parsers may disagree about a key that occurs twice, or about YAML 1.1.
    body["executorPodTemplate"] =
        json!("spec:\n  hostNetwork: no\n  terminationGracePeriodSeconds: 0o10\n  containers: [{name: executor}]\n");
    let plan = world.send(Some(&key), "POST", "/v1/submissions?dryRun=true", Some(&body)).await;
    if plan.status == 200 {
        let items = plan.json()["manifest"]["items"].clone();
        let text = items.as_array().unwrap().iter().find_map(|item| item["data"]["podspec-configmap-key"].as_str());
        assert!(serde_json::from_str::<Value>(text.unwrap()).is_ok(), "{text:?}");
    } else {
        assert!([400, 422].contains(&plan.status), "{plan:?}");
    }
    body["executorPodTemplate"] = json!("spec: {containers: [{name: executor}], nodeSelector: {pool: red}}");
    let plan = world.send(Some(&key), "POST", "/v1/submissions?dryRun=true", Some(&body)).await.json();
    let items = plan["manifest"]["items"].as_array().unwrap();
    let text = items.iter().find_map(|item| item["data"]["podspec-configmap-key"].as_str()).unwrap();
    assert_eq!(text, r#"{"spec":{"containers":[{"name":"executor"}],"nodeSelector":{"pool":"red"}}}"#);
}
