//! Caps of tenants on streams.

use axum::response::Response;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use sparkgate::access::Role;
use sqlx::PgPool;

use crate::access::world::{World, job};

const FILE: &str = "
authentication: {}
tenants:
  red: {namespaces: [red], limits: {subscribers: 1, logReaders: 1}}
  blue: {namespaces: [blue]}
limits: {writes: 100000/s, reads: 100000/s}
";

/// Checks that a request was refused because of a limit of the tenant.
async fn assert_limited(answer: Response, limit: &str) {
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()["retry-after"], "1");
    let problem: Value = serde_json::from_slice(&answer.into_body().collect().await.unwrap().to_bytes()).unwrap();
    assert_eq!(problem["code"], "rate-limited", "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("the limit `{limit}` of tenant red")), "{problem}");
}

#[sqlx::test]
async fn a_tenant_has_no_more_subscribers_than_its_limit(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let red = world.key(Role::Viewer, Some("red")).await;
    let colleague = world.key(Role::Submitter, Some("red")).await;
    let id = world.submit(&colleague, "red").await;
    let stream = world.open(&red, "/v1/events").await;
    assert_eq!(stream.status(), 200);
    for path in ["/v1/events".to_owned(), format!("/v1/submissions/{id}/wait")] {
        assert_limited(world.open(&colleague, &path).await, "subscribers").await;
    }
    let blue = world.key(Role::Viewer, Some("blue")).await;
    let admin = world.key(Role::Admin, None).await;
    for token in [&blue, &admin] {
        assert_eq!(world.open(token, "/v1/events").await.status(), 200, "other callers have places of their own");
    }
    drop(stream);
    assert_eq!(world.open(&colleague, "/v1/events").await.status(), 200);
}

#[sqlx::test]
async fn a_tenant_reads_no_more_logs_at_once_than_its_limit(pool: PgPool) {
    let world = World::new(pool, FILE).await;
    let red = world.key(Role::Submitter, Some("red")).await;
    let log = format!("/v1/submissions/{}/logs?follow=true", world.submit(&red, "red").await);
    let stream = world.open(&red, &log).await;
    assert_eq!(stream.status(), 200);
    assert_limited(world.open(&red, &log).await, "logReaders").await;
    let admin = world.key(Role::Admin, None).await;
    assert_eq!(world.open(&admin, &log).await.status(), 200);
    drop(stream);
    assert_eq!(world.open(&red, &log).await.status(), 200);
}

#[sqlx::test]
async fn a_tenant_keeps_no_more_records_than_its_limit(pool: PgPool) {
    let file = "authentication: {}\ntenants: {red: {namespaces: [red], limits: {recordBytes: 20000}}}\n";
    let world = World::new(pool.clone(), file).await;
    let red = world.key(Role::Submitter, Some("red")).await;
    let mut accepted = 0;
    let refused = loop {
        let answer = world.send(Some(&red), "POST", "/v1/submissions", Some(&job("red"))).await;
        if answer.status != 201 {
            break answer;
        }
        accepted += 1;
    };
    assert!(accepted > 0);
    assert_eq!((refused.status, &refused.json()["code"]), (403, &json!("record-quota-exceeded")), "{refused:?}");
    assert!(refused.body.contains("its limit `recordBytes`, 20000"), "{refused:?}");
    let create = json!({"action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appResource": "local:///app.jar",
        "mainClass": "M", "appArgs": [], "environmentVariables": {}, "sparkProperties": job("red")["sparkProperties"]});
    let refused = world.send(Some(&red), "POST", "/v1/submissions/create", Some(&create)).await;
    assert_eq!((refused.status, &refused.json()["action"]), (403, &json!("ErrorResponse")), "{refused:?}");
    let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM submissions").fetch_one(&pool).await.unwrap();
    assert_eq!(rows, accepted, "nothing of a refused one is stored");

    // What was deleted makes room.
    sqlx::query("DELETE FROM submissions").execute(&pool).await.unwrap();
    let answer = world.send(Some(&red), "POST", "/v1/submissions", Some(&job("red"))).await;
    assert_eq!(answer.status, 201, "{answer:?}");
}
