//! The policy of a tenant judges a driver again when it is launched, if it has changed since the submission was accepted.

use std::fs;

use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::{
    Api, ResourceExt,
    api::{ListParams, ObjectMeta, PostParams},
};
use serde_json::{Value, json};
use sparkgate::{
    access::Role,
    submission::{Outcome, Placement, State, StateChange},
};
use sqlx::PgPool;

use crate::access::world::{World, job};

/// Returns an access file in which the tenant has these namespaces and permits these images. A default of the operator is a
/// property that requests may not set.
fn file(namespaces: &str, images: &str) -> String {
    format!(
        "
authentication: {{}}
tenants:
  red:
    namespaces: [{namespaces}]
    serviceAccounts: [spark]
    properties: {{spark.kubernetes.authenticate.driver.serviceAccountName: spark}}
    defaults: {{spark.driver.extraJavaOptions: -Da=b}}
    policy: {{images: [{images}], limits: {{executors: 10}}}}
  blue: {{namespaces: [blue]}}
limits: {{writes: 100000/s, reads: 100000/s}}
"
    )
}

/// Creates a gateway whose cluster has the namespace `red`, and the key of a submitter.
async fn world(pool: PgPool) -> (World, String) {
    let world = World::new(pool, &file("red", "spark")).await;
    let key = world.key(Role::Submitter, Some("red")).await;
    let metadata = ObjectMeta { name: Some("red".to_owned()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    Api::all(world.client.clone()).create(&PostParams::default(), &namespace).await.unwrap();
    (world, key)
}

/// Replaces the access file, and waits until the gateway has read it: the tenant has the namespace `marker` then.
async fn change(world: &World, key: &str, content: String, marker: &str) {
    fs::write(world.file.path(), content).unwrap();
    let _guard = world.follow_access_file();
    while !world.get(key, "/v1/me").await.body.contains(marker) {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

async fn submission(world: &World, key: &str, id: &str) -> Value {
    world.get(key, &format!("/v1/submissions/{id}")).await.json()
}

async fn pods(world: &World) -> Vec<String> {
    let pods: Api<Pod> = Api::all(world.client.clone());
    pods.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
}

#[sqlx::test]
async fn a_driver_that_a_changed_policy_refuses_is_not_created(pool: PgPool) {
    let (world, key) = world(pool).await;
    let id = world.submit(&key, "red").await;
    change(&world, &key, file("red, red-2", "registry.example.org/**"), "red-2").await;
    world.service.launcher.work().await.unwrap();
    let document = submission(&world, &key, &id).await;
    assert_eq!((&document["state"], &document["failure"]["code"]), (&json!("ERROR"), &json!("REFUSED")), "{document}");
    assert_eq!(document["failure"]["reason"], "PolicyViolation", "{document}");
    let message = document["failure"]["message"].as_str().unwrap();
    assert!(message.contains("images: Pod/spec/containers/0/image"), "{message}");
    assert!(message.contains("images: Executor/spec/containers/0/image"), "{message}");
    assert_eq!(message.matches("; ").count(), 1, "no other rule is broken: {message}");
    assert_eq!(pods(&world).await, Vec::<String>::new());
}

/// Replicas have clocks of their own.
#[sqlx::test]
async fn the_newer_access_file_judges_whatever_the_clocks_say(pool: PgPool) {
    let (world, key) = world(pool.clone()).await;
    let ids = [world.submit(&key, "red").await, world.submit(&key, "red").await];
    let stored = async |id: &str, pattern: &str, text: &str| {
        let changed =
            "UPDATE manifests SET objects = regexp_replace(objects, $2, $3) WHERE submission_id = $1 AND objects ~ $2";
        let changed = sqlx::query(changed).bind(id).bind(pattern).bind(text).execute(&pool).await.unwrap();
        assert_eq!(changed.rows_affected(), 1, "{pattern}");
    };
    // The clock of the replica that accepted the first was ahead. The second was accepted under a newer file by one whose clock was
    // behind.
    stored(&ids[0], r#""readAt":"[^"]*""#, r#""readAt":"2999-01-01T00:00:00Z""#).await;
    stored(&ids[1], r#""readAt":"[^"]*""#, r#""readAt":"1999-01-01T00:00:00Z""#).await;
    stored(&ids[1], r#""generation":[0-9]+"#, r#""generation":99"#).await;
    change(&world, &key, file("red, red-2", "registry.example.org/**"), "red-2").await;
    world.service.launcher.work().await.unwrap();
    let [first, second] = [submission(&world, &key, &ids[0]).await, submission(&world, &key, &ids[1]).await];
    assert_eq!(first["failure"]["reason"], "PolicyViolation", "{first}");
    assert_eq!(second["state"], "PENDING", "{second}");

    // A file that becomes what it was is newer again.
    change(&world, &key, file("red, red-3", "spark"), "red-3").await;
    let _guard = world.follow_access_file();
    let generations = "SELECT count(*) FROM access_generations";
    while sqlx::query_scalar::<_, i64>(generations).fetch_one(&pool).await.unwrap() < 3 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[sqlx::test]
async fn a_driver_that_a_changed_policy_permits_is_created(pool: PgPool) {
    let (world, key) = world(pool).await;
    let mut body = job("red");
    body["executorPodTemplate"] = json!({"spec": {"containers": [{"name": "executor"}], "nodeSelector": {"a": "b"}}});
    body["driverPodTemplate"] =
        json!({"metadata": {"labels": {"team": "x"}}, "spec": {"containers": [{"name": "driver"}]}});
    let submitted = world.send(Some(&key), "POST", "/v1/submissions", Some(&body)).await;
    assert_eq!(submitted.status, 201, "{submitted:?}");
    change(&world, &key, file("red, red-2", "spark, \"registry.example.org/**\""), "red-2").await;
    world.service.launcher.work().await.unwrap();
    let document = submission(&world, &key, submitted.json()["id"].as_str().unwrap()).await;
    assert_eq!(document["state"], "PENDING", "{document}");
    assert_eq!(pods(&world).await.len(), 1);
}

#[sqlx::test]
async fn a_submission_whose_namespace_its_tenant_has_lost_is_not_launched(pool: PgPool) {
    let (world, key) = world(pool).await;
    let id = world.submit(&key, "red").await;
    let moved = file("red-2", "spark").replace("[blue]", "[blue, red]");
    change(&world, &key, moved, "red-2").await;
    world.service.launcher.work().await.unwrap();
    let document = submission(&world, &key, &id).await;
    assert_eq!(document["failure"]["reason"], "PolicyViolation", "{document}");
    let message = document["failure"]["message"].as_str().unwrap();
    assert!(message.contains("namespace red doesn't belong to tenant red any more"), "{message}");
    assert!(!message.contains("blue") && pods(&world).await.is_empty());
}

#[sqlx::test]
async fn each_attempt_is_judged_by_the_present_policy(pool: PgPool) {
    let (world, key) = world(pool.clone()).await;
    let mut body = job("red");
    body["maxRetries"] = json!({"application": 1});
    let submitted = world.send(Some(&key), "POST", "/v1/submissions", Some(&body)).await.json();
    let id = submitted["id"].as_str().unwrap();
    world.service.launcher.work().await.unwrap();
    assert_eq!(pods(&world).await.len(), 1);
    let store = sparkgate::store::Store::new(pool.clone());
    let failed = Outcome { exit_code: Some(3), ..Outcome::new(State::Failed, "Error", "it failed") };
    let ended = StateChange::Ended(failed);
    assert!(store.advance(&id.parse().unwrap(), 1, None, &ended, &Placement::default()).await.unwrap());
    sqlx::query("UPDATE submissions SET not_before = NULL").execute(&pool).await.unwrap();
    change(&world, &key, file("red, red-2", "registry.example.org/**"), "red-2").await;
    world.service.launcher.work().await.unwrap();
    let document = submission(&world, &key, id).await;
    assert_eq!((&document["attempt"], &document["state"]), (&json!(2), &json!("ERROR")), "{document}");
    assert_eq!(document["failure"]["reason"], "PolicyViolation", "{document}");
    assert_eq!(pods(&world).await.len(), 1, "only that of the first attempt");
}
