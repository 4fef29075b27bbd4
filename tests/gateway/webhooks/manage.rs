//! Webhooks as resources.

use std::io::Write;

use serde_json::json;
use sparkgate_testing::{
    receiver::{Answer, Receiver},
    wait::until,
};
use sqlx::PgPool;

use crate::webhooks::world::Replica;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[sqlx::test]
async fn a_request_that_cannot_be_used_is_refused_with_its_field(pool: PgPool) {
    let replica = Replica::new(&pool).await;
    let url = "https://hooks.example.org/x";
    for (body, pointer) in [
        (json!({"url": "https://10.0.0.1/"}), "#/url"),
        (json!({"url": "nothing"}), "#/url"),
        (json!({"url": url, "format": "xml"}), "#/format"),
        (json!({"url": url, "filter": {"states": ["FINISHED", "DONE"]}}), "#/filter/states/1"),
        (json!({"url": url, "filter": {"name": "x".repeat(300)}}), "#/filter/name"),
        (json!({"url": url, "secret": "hunter2"}), "#/secret"),
        (json!({"url": url, "bearerToken": "a b"}), "#/bearerToken"),
    ] {
        let (status, problem) = replica.ask("POST", "/v1/webhooks", Some(body.clone())).await;
        assert_eq!((status, &problem["errors"][0]["pointer"]), (400, &json!(pointer)), "{body}: {problem}");
        assert!(!problem.to_string().contains("hunter2"));
    }
    assert_eq!(replica.ask("POST", "/v1/webhooks", Some(json!({"url": url, "tenant": "red"}))).await.0, 403);
    assert_eq!(replica.ask("GET", "/v1/webhooks", None).await, (200, json!({"items": []})));
}

#[sqlx::test]
async fn webhooks_of_a_submission_are_checked_with_its_request(pool: PgPool) {
    let replica = Replica::new(&pool).await;
    let submit = |webhooks: serde_json::Value| {
        let body = json!({"appResource": "local:///a.jar", "mainClass": "A", "webhooks": webhooks});
        replica.ask("POST", "/v1/submissions", Some(body))
    };
    let url = "https://hooks.example.org/x";
    for (webhooks, pointer) in [
        (json!([{"url": url}]), "#/webhooks/0/secret"),
        (json!([{"url": url, "secret": SECRET}, {"url": "http://[::1]:22/", "secret": SECRET}]), "#/webhooks/1/url"),
        (json!([{"url": url, "secret": SECRET, "format": "xml"}]), "#/webhooks/0/format"),
        (json!([{"url": url, "secret": SECRET, "states": ["x"]}]), "#/webhooks/0/states/0"),
        (json!([{"url": url, "secret": SECRET, "colour": "red"}]), "#/webhooks/0/colour"),
        (json!(vec![json!({"url": url, "secret": SECRET}); 5]), "#/webhooks"),
    ] {
        let (status, problem) = submit(webhooks.clone()).await;
        assert_eq!((status, &problem["errors"][0]["pointer"]), (400, &json!(pointer)), "{webhooks}: {problem}");
    }
    let (status, submission) = submit(json!([{"url": url, "secret": SECRET}])).await;
    assert_eq!(status, 201);
    let listed =
        replica.ask("GET", &format!("/v1/webhooks?submission={}", submission["id"].as_str().unwrap()), None).await.1;
    assert_eq!((&listed["items"][0]["url"], &listed["items"][0]["submissionId"]), (&json!(url), &submission["id"]));
    assert_eq!(replica.ask("GET", "/v1/webhooks", None).await.1["items"], json!([]));
}

#[sqlx::test]
async fn a_deleted_webhook_gets_nothing_more(pool: PgPool) {
    let receiver = Receiver::start(|_, _| Answer::Status(500)).await;
    let replica = Replica::new(&pool).await.run();
    let webhook = replica.create(json!({"url": receiver.url("/x")})).await;
    replica.submit(json!({})).await;
    until("it was tried", async || !receiver.received().is_empty()).await;
    let path = format!("/v1/webhooks/{}", webhook["id"].as_str().unwrap());
    assert_eq!(replica.ask("DELETE", &path, None).await.0, 204);
    for (method, path) in [("GET", path.clone()), ("DELETE", path.clone()), ("GET", format!("{path}/deliveries"))] {
        assert_eq!(replica.ask(method, &path, None).await.0, 404, "{method} {path}");
    }
    let store = sparkgate::store::Store::new(pool.clone());
    assert_eq!(store.due_webhooks(100, &[]).await.unwrap().len(), 0);
    assert_eq!(store.clean_up_webhooks(10).await.unwrap(), 1, "the delivery that was pending");
}

#[sqlx::test]
async fn clean_up_keeps_what_is_pending_or_new(pool: PgPool) {
    let replica = Replica::new(&pool).await;
    let webhook = replica.create(json!({"url": "https://hooks.example.org/x"})).await;
    let insert = "INSERT INTO webhook_deliveries (webhook_id, submission_id, sequence, event, status, ended_at)
        SELECT $1, 'driver-20260102030405-0000', row_number() OVER (), '{\"attempt\": 1, \"state\": \"QUEUED\"}', status,
            now() - make_interval(days => days)
        FROM (VALUES ('delivered', 0), ('delivered', 2), ('dead', 2), ('dead', 31), ('pending', NULL)) AS v (status, days)";
    sqlx::query(insert).bind(webhook["id"].as_str().unwrap()).execute(&pool).await.unwrap();
    // The webhook of a submission that wasn't accepted.
    let attach = "INSERT INTO webhooks (id, tenant, principal, url, format, own, submission_id, states, labels, secrets, since, created_at)
        VALUES ('a', 'default', 'x', 'y', 'cloudevents', true, 'driver-20200101000000-0000', '{}', '{}', '', 0, now() - interval '2 hours')";
    sqlx::query(attach).execute(&pool).await.unwrap();
    let store = sparkgate::store::Store::new(pool.clone());
    assert_eq!(store.clean_up_webhooks(10).await.unwrap(), 3);
    let left: Vec<String> =
        sqlx::query_scalar("SELECT status FROM webhook_deliveries ORDER BY id").fetch_all(&pool).await.unwrap();
    assert_eq!(left, ["delivered", "dead", "pending"]);
    assert_eq!(store.clean_up_webhooks(10).await.unwrap(), 0);
}

#[sqlx::test]
async fn secrets_are_encrypted_if_the_gateway_has_keys(pool: PgPool) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "k1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").unwrap();
    let receiver = Receiver::start(|_, _| Answer::Status(200)).await;
    let replica = Replica::with_keys(&pool, file.path()).await.run();
    let webhook = replica.create(json!({"url": receiver.url("/x"), "secret": SECRET})).await;
    let stored: (Vec<u8>, Option<String>) =
        sqlx::query_as("SELECT secrets, secrets_key FROM webhooks").fetch_one(&pool).await.unwrap();
    assert_eq!(stored.1.as_deref(), Some("k1"));
    assert!(!String::from_utf8_lossy(&stored.0).contains("whsec"));
    replica.submit(json!({})).await;
    until("it is signed and sent", async || receiver.taken("/x").len() == 1).await;
    let path = format!("/v1/webhooks/{}", webhook["id"].as_str().unwrap());
    assert_eq!(replica.ask("POST", &format!("{path}/rotate"), None).await.0, 200);
}

#[sqlx::test]
async fn an_expired_webhook_gets_no_more_changes_and_is_deleted_a_week_later(pool: PgPool) {
    let receiver = Receiver::start(|_, _| Answer::Status(200)).await;
    let replica = Replica::new(&pool).await.run();
    for seconds in [0_u64, 400_000_000] {
        let body = json!({"url": receiver.url("/x"), "expiresInSeconds": seconds});
        let (status, problem) = replica.ask("POST", "/v1/webhooks", Some(body)).await;
        assert_eq!((status, &problem["errors"][0]["pointer"]), (400, &json!("#/expiresInSeconds")), "{problem}");
    }
    let ends = replica.create(json!({"url": receiver.url("/ends"), "expiresInSeconds": 3600})).await;
    let stays = replica.create(json!({"url": receiver.url("/stays")})).await;
    assert!(ends["expiresAt"].as_str() > ends["createdAt"].as_str() && stays["expiresAt"].is_null(), "{ends} {stays}");
    let id = replica.submit(json!({})).await;
    until("both get the change", async || receiver.taken("/ends").len() + receiver.taken("/stays").len() == 2).await;

    sqlx::query("UPDATE webhooks SET expires_at = now() WHERE expires_at IS NOT NULL").execute(&pool).await.unwrap();
    replica.advance(&id, "LAUNCHING").await;
    until("one gets the next", async || receiver.taken("/stays").len() == 2).await;
    assert_eq!(replica.deliveries(&ends).await.len(), 1);
    let store = sparkgate::store::Store::new(pool.clone());
    store.clean_up_webhooks(10).await.unwrap();
    let listed = async || replica.ask("GET", "/v1/webhooks", None).await.1["items"].as_array().unwrap().len();
    assert_eq!(listed().await, 2, "it can still be looked at");
    sqlx::query("UPDATE webhooks SET expires_at = now() - interval '8 days' WHERE expires_at IS NOT NULL")
        .execute(&pool)
        .await
        .unwrap();
    store.clean_up_webhooks(10).await.unwrap();
    assert_eq!(listed().await, 1);
}
