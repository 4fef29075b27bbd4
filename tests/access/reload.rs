//! The access file changes while the gateway runs.

use std::fs;

use sparkgate::{access::Role, service::Readiness};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::world::{TWO_TENANTS, World};

async fn until(mut is_so: impl AsyncFnMut() -> bool) {
    while !is_so().await {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[sqlx::test]
async fn a_changed_file_applies_to_later_requests_and_a_wrong_one_changes_nothing(pool: PgPool) {
    let world = World::new(pool, TWO_TENANTS).await;
    let key = world.key(Role::Submitter, Some("red")).await;
    world.submit(&key, "red").await;
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    tokio::spawn(world.service.access.clone().run(stop));

    fs::write(world.file.path(), "tenants:\n  red: {namespaces: red}\n").unwrap();
    let trouble = async || match world.service.health.readiness().await {
        Readiness::Accepting(reason) => Some(reason.to_string()),
        _ => None,
    };
    until(async || trouble().await.is_some_and(|text| text.contains("access file"))).await;
    assert!(trouble().await.unwrap().contains("line 2"), "{:?}", trouble().await);
    world.submit(&key, "red").await;

    fs::write(world.file.path(), "authentication: {}\ntenants:\n  red: {namespaces: [crimson]}\n").unwrap();
    until(async || world.get(&key, "/v1/me").await.body.contains("crimson")).await;
    assert!(!trouble().await.is_some_and(|text| text.contains("access file")));
    world.submit(&key, "crimson").await;
    // What was submitted before still belongs to the tenant.
    assert_eq!(world.get(&key, "/v1/submissions").await.json()["items"].as_array().unwrap().len(), 3);
}
