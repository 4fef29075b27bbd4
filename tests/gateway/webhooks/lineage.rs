//! The lineage server of the operator, which gets run events of all tenants.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};
use sparkgate::service::LineageServer;
use sparkgate_testing::{
    receiver::{Answer, Receiver},
    wait::until,
};
use sqlx::PgPool;

use crate::webhooks::world::Replica;

/// Creates a replica whose webhooks may not lead to this machine, but for this server of the operator.
async fn replica(pool: &PgPool, url: &str, token_file: Option<PathBuf>) -> Replica {
    Replica::with_lineage(pool, LineageServer { url: url.to_owned(), token_file }).await.run()
}

async fn row(pool: &PgPool) -> Option<(String, i64)> {
    let row = "SELECT url, since FROM webhooks WHERE id = 'openlineage' AND tenant = ''";
    sqlx::query_as(row).fetch_optional(pool).await.unwrap()
}

#[sqlx::test]
async fn run_events_of_all_tenants_go_to_the_server_of_the_operator(pool: PgPool) {
    let dir = tempfile::tempdir().unwrap();
    let token = dir.path().join("token");
    fs::write(&token, "first\n").unwrap();
    let receiver = Receiver::start(|_, _| Answer::Status(201)).await;
    let replica = replica(&pool, &receiver.url("/lineage"), Some(token.clone())).await;
    until("the webhook exists", async || row(&pool).await.is_some()).await;
    let ids = [replica.submit(json!({})).await, replica.submit(json!({})).await];
    until("both have begun", async || receiver.distinct("/lineage") == 2).await;
    let received = receiver.received();
    let header = |name: &str| received[0].headers.get(name).map(String::as_str);
    assert_eq!((header("authorization"), header("webhook-signature")), (Some("Bearer first"), None));

    // The token is replaced, and the second submission is one of another tenant.
    fs::write(&token, "second").unwrap();
    sqlx::query("UPDATE submissions SET tenant = 'red' WHERE id = $1")
        .bind(ids[1].as_str())
        .execute(&pool)
        .await
        .unwrap();
    for id in &ids {
        replica.advance(id, "FINISHED").await;
    }
    until("both have ended", async || receiver.distinct("/lineage") == 4).await;
    let mut tenants: Vec<(Value, Option<String>)> = Vec::new();
    for received in receiver.received().iter().filter(|received| received.json()["eventType"] == "COMPLETE") {
        let tenant = received.json()["run"]["facets"]["sparkgate_submission"]["tenant"].clone();
        tenants.push((tenant, received.headers.get("authorization").cloned()));
    }
    tenants.sort_by_key(|(tenant, _)| tenant.to_string());
    let second = || Some("Bearer second".to_owned());
    assert_eq!(tenants, [(json!("default"), second()), (json!("red"), second())]);
}

#[sqlx::test]
async fn the_webhook_of_the_installation_follows_the_settings_of_the_replica_that_sends(pool: PgPool) {
    let receiver = Receiver::start(|_, _| Answer::Status(500)).await;
    let (first, second) = (receiver.url("/first"), receiver.url("/second"));
    let replicas = [replica(&pool, &first, None).await, replica(&pool, &first, None).await];
    until("the webhook exists", async || row(&pool).await.is_some()).await;
    let (_, since) = row(&pool).await.unwrap();
    replicas[0].submit(json!({})).await;
    until("it was tried", async || receiver.count() > 0).await;
    for replica in replicas {
        replica.kill().await;
    }
    let next = replica(&pool, &second, None).await;
    until("it leads elsewhere", async || row(&pool).await == Some((second.clone(), since))).await;
    until("what was queued goes there", async || receiver.received().iter().any(|one| one.path == "/second")).await;
    next.kill().await;
    let _without = Replica::new(&pool).await.run();
    until("it is gone", async || row(&pool).await.is_none()).await;
}

#[sqlx::test]
async fn operators_of_the_installation_see_its_webhook_and_do_not_change_it(pool: PgPool) {
    let receiver = Receiver::start(|_, _| Answer::Status(410)).await;
    let replica = replica(&pool, &receiver.url("/lineage"), None).await;
    until("the webhook exists", async || row(&pool).await.is_some()).await;
    replica.submit(json!({})).await;
    let path = "/v1/webhooks/openlineage";
    let webhook = replica.ask("GET", "/v1/webhooks", None).await.1["items"][0].clone();
    assert_eq!(webhook, replica.ask("GET", path, None).await.1);
    assert_eq!(
        (&webhook["id"], &webhook["submissions"], &webhook["format"], webhook.get("tenant"), webhook.get("createdBy")),
        (&json!("openlineage"), &json!("installation"), &json!("openlineage"), None, None)
    );
    let first = async || replica.deliveries(&webhook).await.first().cloned();
    until("it is dead", async || first().await.is_some_and(|first| first["status"] == "dead")).await;
    assert_eq!(replica.ask("POST", &format!("{path}/replay"), None).await, (202, json!({"deliveries": 1})));
    for (method, path) in [("DELETE", path.to_owned()), ("POST", format!("{path}/rotate"))] {
        let (status, problem) = replica.ask(method, &path, None).await;
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(status == 403 && detail.contains("--openlineage-url"), "{method}: {status} {problem}");
    }
    assert!(row(&pool).await.is_some());
}
