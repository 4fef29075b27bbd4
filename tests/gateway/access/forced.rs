//! Options of the gateway that a tenant forces: no way of asking for others gets around them.

use std::time::Duration;

use serde_json::{Value, json};
use sparkgate::{
    access::{Access, Role},
    api::{HttpSettings, livy_listener},
};
use sqlx::PgPool;

use crate::access::world::{World, job, spark_job};

const FILE: &str = "
authentication: {}
tenants:
  red:
    namespaces: [red]
    properties:
      spark.sparkgate.label.cost: team-a
      spark.sparkgate.runTimeout: 10min
      spark.sparkgate.startTimeout: 5min
      spark.sparkgate.killGrace: 5s
      spark.sparkgate.maxRetries.infrastructure: \"0\"
      spark.sparkgate.maxRetries.application: \"1\"
      spark.sparkgate.uniqueName: \"false\"
limits: {writes: 100000/s, reads: 100000/s}
";

/// What a request asks for instead, as properties.
const ASKED: [(&str, &str); 7] = [
    ("spark.sparkgate.label.cost", "team-b"),
    ("spark.sparkgate.runTimeout", "24h"),
    ("spark.sparkgate.startTimeout", "24h"),
    ("spark.sparkgate.killGrace", "10min"),
    ("spark.sparkgate.maxRetries.infrastructure", "5"),
    ("spark.sparkgate.maxRetries.application", "5"),
    ("spark.sparkgate.uniqueName", "true"),
];

type Row = (Value, Option<i32>, Option<i32>, Option<i32>, i32, i32, bool);

/// Waits for as many rows, and returns the newest.
async fn newest(world: &World, count: i64) -> Row {
    let rows = "SELECT count(*) FROM submissions";
    while sqlx::query_scalar::<_, i64>(rows).fetch_one(&world.pool).await.unwrap() < count {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let newest = "SELECT labels, run_timeout, start_timeout, kill_grace, max_retries_infrastructure,
                         max_retries_application, unique_name
                  FROM submissions ORDER BY number DESC LIMIT 1";
    sqlx::query_as(newest).fetch_one(&world.pool).await.unwrap()
}

fn with_properties(mut body: Value) -> Value {
    let properties = body["sparkProperties"].as_object_mut().unwrap();
    properties.extend(ASKED.map(|(key, value)| (key.to_owned(), json!(value))));
    body
}

#[sqlx::test]
async fn forced_options_hold_whatever_a_request_says(pool: PgPool) {
    let world = World::new(pool.clone(), FILE).await;
    let key = world.key(Role::Submitter, Some("red")).await;
    let router = livy_listener(world.service.clone(), HttpSettings::default()).unwrap();
    let livy = World { router, ..World::new(pool, FILE).await };
    let mut fields = job("red");
    fields.as_object_mut().unwrap().extend(
        json!({
            "labels": {"cost": "team-b", "team": "x"}, "runTimeoutSeconds": 86400, "startTimeoutSeconds": 86400,
            "killGraceSeconds": 600, "maxRetries": {"infrastructure": 5, "application": 5}, "uniqueName": true,
        })
        .as_object()
        .unwrap()
        .clone(),
    );
    let conf = with_properties(spark_job("red"))["sparkProperties"].clone();
    let mut line: Vec<String> = ["--class", "A"].map(str::to_owned).into();
    for (key, value) in conf.as_object().unwrap() {
        line.extend(["--conf".to_owned(), format!("{key}={}", value.as_str().unwrap())]);
    }
    line.push("local:///a.jar".to_owned());
    let mut command = spark_job("red");
    command["mainClass"] = json!("org.apache.spark.deploy.SparkSubmit");
    command["appResource"] = json!("spark-internal");
    command["appArgs"] = json!(line);
    let livys = json!({"file": "local:///app.jar", "className": "A", "conf": conf, "name": "b"});
    for (count, (what, gateway, path, body)) in (1..).zip([
        ("fields", &world, "/v1/submissions", fields),
        ("properties", &world, "/v1/submissions", with_properties(job("red"))),
        ("properties of Spark's protocol", &world, "/v1/submissions/create", with_properties(spark_job("red"))),
        ("a command line", &world, "/v1/submissions/create", command),
        ("a batch of Livy", &livy, "/batches", livys),
    ]) {
        let answer = gateway.send(Some(&key), "POST", path, Some(&body)).await;
        assert!((200..300).contains(&answer.status), "{what}: {answer:?}");
        let (labels, run, start, grace, infrastructure, application, _) = newest(&world, count).await;
        assert_eq!(labels["cost"], "team-a", "{what}");
        let numbers = (run, start, grace, infrastructure, application);
        assert_eq!(numbers, (Some(600), Some(300), Some(5), 0, 1), "{what}");
        if what == "fields" {
            assert_eq!(labels["team"], "x", "what isn't forced stays");
        }
    }
    let of_another = world.get(&key, "/v1/submissions?label=cost%3Dteam-b").await;
    assert_eq!(of_another.json()["items"].as_array().map(Vec::len), Some(0), "{of_another:?}");
}

#[sqlx::test]
async fn a_client_that_owns_its_pods_has_the_forced_options_too(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let key = world.key(Role::Submitter, Some("red")).await;
    let owner =
        json!({"apiVersion": "sparkoperator.k8s.io/v1beta2", "kind": "SparkApplication", "name": "a", "uid": "u"});
    let body = json!({
        "submission_id": "x1",
        "driver_pod_template": {"metadata": {"ownerReferences": [owner]}, "spec": {"containers": null}},
        "spark_submit_args": [
            "--master", "k8s://https://10.96.0.1:443", "--class", "A", "--conf", "spark.kubernetes.namespace=red",
            "--conf", "spark.sparkgate.label.cost=team-b", "local:///a.jar",
        ],
    });
    // The answer waits for the pod, which no kubelet starts.
    let row = tokio::select! {
        answer = world.send(Some(&key), "POST", "/api/v1/spark-submit", Some(&body)) => panic!("{answer:?}"),
        row = newest(&world, 1) => row,
    };
    let (labels, run, start, grace, infrastructure, application, _) = row;
    assert_eq!(labels["cost"], "team-a");
    assert_eq!((run, start, grace), (Some(600), Some(300), Some(5)));
    assert_eq!((infrastructure, application), (0, 0), "the client retries by itself");
}

#[test]
fn options_of_one_request_can_not_be_forced() {
    for name in ["clientId", "defaults", "idempotencyKey"] {
        let file = format!(
            "authentication: {{}}\ntenants: {{red: {{namespaces: [red], properties: {{spark.sparkgate.{name}: x}}}}}}\n"
        );
        let faults = Access::parse(&file).unwrap_err().to_string();
        assert!(faults.contains(&format!("spark.sparkgate.{name}")), "{faults}");
    }
}
