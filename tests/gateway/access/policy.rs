//! The policy of a tenant judges each driver before anything of it is stored.

use serde_json::{Value, json};
use sparkgate::access::Role;
use sqlx::PgPool;

use crate::access::world::{World, job, spark_job};

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

/// Rules of an operator that compare each volume with each mount.
const WITH_LOOPS: &str = "
authentication: {}
tenants:
  red:
    namespaces: [red]
    policy:
      cel:
        - name: used
          expression: pod.spec.volumes.all(v, pod.spec.containers.exists(c, c.volumeMounts.exists(m, m.name == v.name)))
          message: no unused volumes
  blue: {namespaces: [blue]}
limits: {writes: 100000/s, reads: 100000/s}
";

/// Returns a job whose driver has as many volumes, all mounted.
fn with_volumes(namespace: &str, count: usize) -> Value {
    let mut body = job(namespace);
    let volumes: Vec<Value> = (0..count).map(|at| json!({"name": format!("v{at}"), "emptyDir": {}})).collect();
    let mount = |at| json!({"name": format!("v{at}"), "mountPath": format!("/v{at}")});
    let mounts: Vec<Value> = (0..count).map(mount).collect();
    body["driverPodTemplate"] = json!({"spec": {"volumes": volumes, "containers": [{"volumeMounts": mounts}]}});
    body
}

#[sqlx::test]
async fn what_a_request_costs_is_bounded_before_it_is_spent(pool: PgPool) {
    let world = World::new(pool, WITH_LOOPS).await;
    let key = world.key(Role::Submitter, None).await;
    let send = async |body: &Value| world.send(Some(&key), "POST", "/v1/submissions?dryRun=true", Some(body)).await;
    let refused = send(&with_volumes("red", 8000)).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let detail = refused.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("8000 entries are too many; the maximum is 1000"), "{detail}");
    // As large as a driver can be.
    let refused = send(&with_volumes("red", 1000)).await;
    assert_eq!(refused.status, 422, "{refused:?}");
    let violations = refused.json()["violations"].clone();
    let message = violations[0]["message"].as_str().unwrap();
    assert!(violations[0]["rule"] == "cel:used" && message.contains("shorten the lists"), "{violations}");
    for (namespace, count) in [("red", 5), ("red", 200), ("blue", 1000)] {
        let accepted = send(&with_volumes(namespace, count)).await;
        assert_eq!(accepted.status, 200, "{namespace} {count}: {accepted:?}");
    }
    let mut many = job("red");
    let properties = many["sparkProperties"].as_object_mut().unwrap();
    properties.extend((0..5001).map(|at| (format!("spark.a{at}"), json!(""))));
    let refused = send(&many).await;
    assert!(refused.status == 400 && refused.body.contains("the maximum is 5000"), "{refused:?}");
}

#[sqlx::test]
async fn a_template_that_restarts_the_driver_is_refused_with_its_field(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let key = world.key(Role::Submitter, Some("red")).await;
    let mut body = job("red");
    let rule = json!({"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}});
    for (template, field) in [
        (json!({"containers": [{"restartPolicy": "OnFailure"}]}), "spec.containers[0].restartPolicy"),
        (
            json!({"containers": [{}], "initContainers": [{"name": "i", "image": "spark", "restartPolicy": "Always", "restartPolicyRules": [rule]}]}),
            "spec.initContainers[0].restartPolicyRules[0].action",
        ),
    ] {
        body["driverPodTemplate"] = json!({ "spec": template });
        let refused = world.send(Some(&key), "POST", "/v1/submissions", Some(&body)).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        let error = refused.json()["errors"][0].clone();
        assert!(error["pointer"] == "#/driverPodTemplate" && error.to_string().contains(field), "{error}");
    }
}

#[sqlx::test]
async fn secrets_that_spark_misses_are_forbidden_and_never_shown(pool: PgPool) {
    let file = "authentication: {}\ntenants: {red: {namespaces: [red], policy: {inlineSecrets: forbid}}, blue: {namespaces: [blue]}}\n";
    let world = World::new(pool, file).await;
    let key = world.key(Role::Operator, None).await;
    for (name, value) in [
        ("spark.hadoop.fs.azure.account.key.acme.dfs.core.windows.net", "CANARY"),
        ("spark.hadoop.fs.gs.auth.service.account.private.key", "CANARY"),
        ("spark.hadoop.fs.azure.sas.c.acme.blob.core.windows.net", "CANARY"),
        ("spark.my.url", "jdbc:postgresql://scott:CANARY@db/x"),
        ("spark.my.address", "https://scott:CANARY@example.org/"),
        ("spark.kubernetes.driver.annotation.example.org/apikey", "CANARY"),
        ("spark.kubernetes.driverEnv.API_KEY", "CANARY"),
        ("spark.executorEnv.DB_PASS", "CANARY"),
        ("environment", "GCP_CREDENTIALS"),
        ("environment", "PASSPHRASE"),
        ("argument", "jdbc:postgresql://scott:CANARY@db/x"),
    ] {
        let body = |namespace: &str| {
            let mut body = job(namespace);
            match name {
                "environment" => body["environmentVariables"] = json!({ value: "CANARY" }),
                "argument" => body["appArgs"] = json!([value]),
                name => body["sparkProperties"][name] = json!(value),
            }
            body
        };
        let refused = world.send(Some(&key), "POST", "/v1/submissions", Some(&body("red"))).await;
        assert_eq!(refused.status, 422, "{name}={value}: {refused:?}");
        assert!(rules(&refused.json()).contains(&"inlineSecrets") && !refused.body.contains("CANARY"), "{refused:?}");
        let accepted = world.send(Some(&key), "POST", "/v1/submissions", Some(&body("blue"))).await;
        assert_eq!(accepted.status, 201, "{name}={value}: {accepted:?}");
        let path = format!("/v1/submissions/{}", accepted.json()["id"].as_str().unwrap());
        for part in ["", "/request", "/manifest"] {
            let shown = world.get(&key, &format!("{path}{part}")).await;
            assert!(shown.status == 200 && !shown.body.contains("CANARY"), "{name}={value} {part}: {shown:?}");
        }
    }
}
