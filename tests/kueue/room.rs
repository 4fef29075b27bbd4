//! Namespaces whose `ResourceQuota` is full: a launch that waits for room there leaves Kueue's quota to others.

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::{
    Api,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;
use sqlx::PgPool;

use crate::world::{Quota, World};

/// Creates a quota of one pod, which others use up. No controller runs that would write its status.
async fn fill(world: &World) {
    let quota = json!({"metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}}});
    let quotas: Api<ResourceQuota> = Api::namespaced(world.admin.clone(), &world.namespace);
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
    count_pods(world, 1).await;
}

async fn count_pods(world: &World, used: u32) {
    let status = json!({"status": {"hard": {"pods": "1"}, "used": {"pods": used.to_string()}}});
    let quotas: Api<ResourceQuota> = Api::namespaced(world.admin.clone(), &world.namespace);
    quotas.patch_status("one", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

/// Kueue admits a submission after the namespace has become full.
async fn gives_quota_back(world: &World) {
    let first = world.submit(1).await;
    let driver = world.driver(&first, 1).await;
    world.until(&first, 1, "PENDING").await;
    let second = world.submit(1).await;
    world.until_waiting(&second, "WaitingForQuota").await;
    fill(world).await;
    world.play_end(&driver, 0).await;
    world.until(&first, 1, "FINISHED").await;
    world.until_no_workload().await;

    count_pods(world, 0).await;
    world.until(&second, 1, "PENDING").await;
    let workloads = world.workloads().await;
    assert_eq!(workloads.len(), 1);
    assert!(workloads[0]["status"]["admission"].is_object(), "{workloads:?}");
    let driver = world.driver(&second, 1).await;
    world.play_end(&driver, 0).await;
    world.until(&second, 1, "FINISHED").await;
}

#[sqlx::test]
async fn a_launch_that_finds_its_namespace_full_gives_its_quota_back_and_takes_it_again(pool: PgPool) {
    let world = World::new(pool, 2).await;
    gives_quota_back(&world).await;
}

/// It loses its place in the queue of the access file, too.
#[sqlx::test]
async fn a_submission_in_a_queue_that_finds_its_namespace_full_gives_its_quota_back(pool: PgPool) {
    let world = World::with_file(pool, Quota { cores: 2, ..Quota::default() }, "{plain: {}}").await;
    world.change_file(&format!("{{plain: {{kueue: {}}}}}", world.namespace));
    gives_quota_back(&world).await;
}

#[sqlx::test]
async fn a_full_namespace_asks_kueue_for_nothing(pool: PgPool) {
    let world = World::new(pool, 2).await;
    fill(&world).await;
    let id = world.submit(1).await;
    let message = world.until_waiting(&id, "QuotaExceeded").await;
    assert!(message.contains("looking for room") && message.contains("exceeded quota: one"), "{message}");
    assert_eq!(world.workloads().await.len(), 0);
    assert!(world.pods().list(&Default::default()).await.unwrap().items.is_empty());
    count_pods(&world, 0).await;
    world.until(&id, 1, "PENDING").await;
}
