//! A copy of a database, beside the original: what both have in common stays the original's.

use std::{path::Path, time::Duration};

use axum::{body::Body, http::Request};
use chrono::{TimeDelta, Utc};
use kube::Client;
use sha2::{Digest, Sha256};
use sparkgate::{
    access::Role,
    cluster::Cluster,
    service::{EncryptionKeys, FileSettings, adopt_cluster},
    store::{DatabaseSettings, Store},
};
use sparkgate_testing::wait::until;
use sqlx::{ConnectOptions, PgPool, postgres::PgConnectOptions};
use uuid::Uuid;

use crate::access::{
    cluster,
    world::{TWO_TENANTS, World, file_settings},
};
use crate::in_memory::Answer;

/// A gateway on a database, and its operator.
struct Gateway {
    world: World,
    operator: String,
}

impl Gateway {
    async fn start(database: &PgConnectOptions, client: &Client, dir: &Path) -> Self {
        let pool = PgPool::connect_with(database.clone()).await.unwrap();
        let (store, keys) = (Store::new(pool.clone()), EncryptionKeys::none());
        let mut world = World::of(store, pool, TWO_TENANTS, client.clone(), keys).await;
        world.keep_files(dir, FileSettings { unused_ttl: Some(Duration::ZERO), ..file_settings() }).await;
        let operator = world.key(Role::Operator, Some("red")).await;
        Self { world, operator }
    }

    async fn send(&self, method: &str, content: &'static str) -> Answer {
        let hash: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
        let body = if method == "PUT" { Body::from(content) } else { Body::empty() };
        let request = Request::builder().method(method).uri(format!("/v1/files/{hash}?namespace=red"));
        let request = request.header("host", "gateway").header("authorization", format!("Bearer {}", self.operator));
        self.world.answer(request.body(body).unwrap()).await
    }

    async fn has(&self, content: &'static str) -> bool {
        let answer = self.send("GET", content).await;
        answer.status == 200 && answer.body == content
    }

    /// Compares the store with the database, as a day later, and returns how many objects were deleted.
    async fn sweep(&self) -> usize {
        self.world.service.files.sweep(Utc::now() + TimeDelta::hours(25)).await.unwrap().orphans
    }

    async fn adopt(&self, same_store: bool) {
        let cluster = Cluster::new(self.world.client.clone(), &[]);
        adopt_cluster(&Store::new(self.world.pool.clone()), &cluster, true, same_store).await.unwrap();
    }

    async fn pending(&self) -> i64 {
        let count = "SELECT count(*) FROM webhook_deliveries WHERE status = 'pending'";
        sqlx::query_scalar(count).fetch_one(&self.world.pool).await.unwrap()
    }
}

#[sqlx::test]
async fn a_copy_leaves_the_files_and_the_receivers_of_its_original_alone(pool: PgPool) {
    let prefix = format!("copies_{}", Uuid::new_v4().simple());
    let create = async |suffix: &str, template: &str| {
        let statement = format!("CREATE DATABASE {prefix}_{suffix} TEMPLATE {template}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&pool).await.unwrap();
        pool.connect_options().as_ref().clone().database(&format!("{prefix}_{suffix}"))
    };
    let first = create("original", "template0").await;
    let url = first.to_url_lossy().to_string();
    Store::connect(&DatabaseSettings { url, max_connections: 4 }).await.unwrap().close().await;
    let (client, dir) = (cluster::start("red").await, tempfile::tempdir().unwrap());

    let original = Gateway::start(&first, &client, dir.path()).await;
    assert_eq!(original.send("PUT", "before").await.status, 201);
    let hook = "INSERT INTO webhooks (id, tenant, principal, url, format, own, states, labels, secrets, since)
            VALUES ('h', 'red', 'p', 'https://a', 'cloudevents', false, '{}', '{}', '', 0);
        INSERT INTO webhook_deliveries (webhook_id, submission_id, sequence, event) VALUES ('h', 's', 1, '{}')";
    sqlx::raw_sql(hook).execute(&original.world.pool).await.unwrap();
    let id = original.world.submit(&original.operator, "red").await;
    original.world.pool.close().await;
    let second = create("copy", &format!("{prefix}_original")).await;

    let original = Gateway::start(&first, &client, dir.path()).await;
    assert_eq!(original.send("PUT", "after").await.status, 201);
    let copy = Gateway::start(&second, &client, dir.path()).await;
    copy.adopt(false).await;
    assert_eq!((original.pending().await, copy.pending().await), (1, 0));
    // What becomes of a submission here is no news of the original's.
    let kill = format!("/v1/submissions/{id}");
    assert_eq!(copy.world.send(Some(&copy.operator), "DELETE", &kill, None).await.status, 202);
    for (gateway, count) in [(&original, 2), (&copy, 0)] {
        let store = Store::new(gateway.world.pool.clone());
        until("the deliveries are queued", async || {
            gateway.world.service.events.publish().await.unwrap();
            store.queue_deliveries(100).await.unwrap();
            let numbered = "SELECT NOT EXISTS (SELECT FROM submission_events WHERE sequence IS NULL)";
            let is_numbered: bool = sqlx::query_scalar(numbered).fetch_one(&gateway.world.pool).await.unwrap();
            is_numbered && store.events_behind_webhooks().await.unwrap() == 0
        })
        .await;
        assert_eq!(gateway.pending().await, count);
    }

    assert!(copy.has("before").await, "it may read");
    assert_eq!(copy.sweep().await, 0);
    copy.world.service.files.clean_up(None).await.unwrap();
    let refused = copy.send("PUT", "of the copy").await;
    assert!(refused.status == 503 && refused.body.contains("adopt-cluster --same-store"), "{refused:?}");
    assert_eq!(copy.send("DELETE", "before").await.status, 204, "a row of its own");
    assert_eq!(original.sweep().await, 0);
    assert!(original.has("before").await && original.has("after").await);

    // With a store of its own.
    let other = tempfile::tempdir().unwrap();
    let moved = Gateway::start(&second, &client, other.path()).await;
    assert_eq!(moved.send("PUT", "of the copy").await.status, 201);
    assert!(moved.has("of the copy").await);
    assert_eq!(moved.sweep().await, 0);

    // The original is gone, and the copy takes its place.
    copy.adopt(true).await;
    let heir = Gateway::start(&second, &client, dir.path()).await;
    assert_eq!(heir.send("PUT", "of the heir").await.status, 201);
    assert_eq!(heir.sweep().await, 2, "what its database doesn't have");
    for gateway in [original, copy, moved, heir] {
        gateway.world.pool.close().await;
    }
    for suffix in ["original", "copy"] {
        let statement = format!("DROP DATABASE {prefix}_{suffix} WITH (FORCE)");
        sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&pool).await.unwrap();
    }
}

#[sqlx::test]
async fn a_copy_takes_no_store_of_an_original_that_makes_no_marks(pool: PgPool) {
    let (client, dir) = (cluster::start("red").await, tempfile::tempdir().unwrap());
    let gateway = Gateway::start(pool.connect_options().as_ref(), &client, dir.path()).await;
    assert_eq!(gateway.send("PUT", "before").await.status, 201);
    for entry in std::fs::read_dir(dir.path()).unwrap().flatten() {
        if entry.file_name().to_string_lossy().ends_with("-generation") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    gateway.adopt(false).await;
    let copy = Gateway::start(pool.connect_options().as_ref(), &client, dir.path()).await;
    assert_eq!(copy.send("PUT", "of the copy").await.status, 503);
    assert!(copy.has("before").await);
}
