//! What a tenant adds to a submission, and what it may not have.

use serde_json::{Value, json};
use sparkgate::access::Role;
use sqlx::PgPool;

use crate::access::world::{World, job};

const FILE: &str = "
authentication: {}
tenants:
  red:
    namespaces: [red, red-batch]
    properties: {spark.authenticate: \"true\", spark.kubernetes.driver.label.team: red}
    defaults: {spark.executor.memory: 3g, spark.kubernetes.container.image: red-spark}
    caps: {runTimeout: 1h}
  blue: {namespaces: [blue]}
limits: {writes: 100000/s, reads: 100000/s}
";

fn property<'a>(plan: &'a Value, key: &str) -> Option<&'a Value> {
    plan["defaults"].as_array().unwrap().iter().find(|default| default["key"] == key)
}

#[sqlx::test]
async fn forced_properties_replace_those_of_the_request_and_defaults_fill_in(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let key = world.key(Role::Submitter, Some("red")).await;
    let mut body = job("red");
    body["sparkProperties"]["spark.authenticate"] = json!("false");
    body["sparkProperties"]["spark.kubernetes.driver.label.team"] = json!("blue");
    let plan = world.send(Some(&key), "POST", "/v1/submissions?dryRun=true", Some(&body)).await;
    assert_eq!(plan.status, 200, "{plan:?}");
    let plan = plan.json();
    let pod = plan["manifest"]["items"].as_array().unwrap().iter().find(|object| object["kind"] == "Pod").unwrap();
    assert_eq!(pod["metadata"]["labels"]["team"], "red");
    assert_eq!(pod["spec"]["containers"][0]["image"], "red-spark");
    for (name, value) in [("spark.authenticate", "true"), ("spark.executor.memory", "3g")] {
        let applied = property(&plan, name).unwrap();
        assert_eq!((&applied["value"], &applied["origin"]), (&json!(value), &json!("tenant")), "{applied}");
    }
    assert_eq!(plan["submission"]["limits"]["runSeconds"], 3600);
}

#[sqlx::test]
async fn a_request_without_a_namespace_gets_the_first_of_its_tenant(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let mut body = job("red");
    body["sparkProperties"].as_object_mut().unwrap().remove("spark.kubernetes.namespace");
    let key = world.key(Role::Submitter, Some("red")).await;
    let created = world.send(Some(&key), "POST", "/v1/submissions", Some(&body)).await;
    assert_eq!((created.status, &created.json()["namespace"]), (201, &json!("red")), "{created:?}");
    assert_eq!(created.json()["tenant"], "red");
    let of_both = world.key(Role::Submitter, None).await;
    let refused = world.send(Some(&of_both), "POST", "/v1/submissions", Some(&body)).await;
    assert!(
        refused.status == 400 && refused.body.contains("red or red-batch") && refused.body.contains("blue"),
        "{refused:?}"
    );
}

#[sqlx::test]
async fn a_refused_namespace_is_answered_alike_whether_it_exists_or_not(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let key = world.key(Role::Submitter, Some("red")).await;
    let mut answers = Vec::new();
    for namespace in ["blue", "void"] {
        let answer = world.send(Some(&key), "POST", "/v1/submissions", Some(&job(namespace))).await;
        assert_eq!(answer.status, 400);
        answers.push(answer.json()["detail"].as_str().unwrap().replace(namespace, "NAMESPACE"));
    }
    assert_eq!(answers[0], answers[1]);
}
