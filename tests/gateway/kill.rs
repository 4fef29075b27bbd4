//! Kills in every state.

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use kube::api::ListParams;
use sparkgate::submission::{DriverState, SubmissionId};
use sparkgate_testing::webhook::Conduct;
use sqlx::PgPool;

use crate::{
    hanging_launch::HangingLaunch,
    world::{World, eventually},
};

#[sqlx::test]
async fn kill_before_the_launch_ends_the_submission_at_once(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[]).await;
    assert!(world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
    assert_eq!(world.status(&id).await.driver_state, DriverState::Killed);
    assert_eq!(world.service.launcher.work().await.unwrap(), 0);
    assert_eq!(world.driver_count().await, 0);
    assert!(!world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap(), "it has ended");
}

#[sqlx::test]
async fn kill_between_the_claim_and_the_pod_creates_no_pod(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[]).await;
    // As if a launcher had died right after its claim.
    sqlx::query("UPDATE submissions SET state = 'LAUNCHING'").execute(&world.pool).await.unwrap();
    assert!(world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
    assert_eq!(world.status(&id).await.driver_state, DriverState::Submitted, "not yet");
    world.service.launcher.work().await.unwrap();
    assert_eq!(world.status(&id).await.driver_state, DriverState::Killed);
    assert_eq!(world.driver_count().await, 0);
}

/// The kill waits for the claim of the launch, whose call may take a minute.
#[sqlx::test]
async fn kill_that_was_accepted_before_the_pod_exists_starts_no_driver(pool: PgPool) {
    let world = World::new(pool).await;
    let HangingLaunch { id, webhook, launch } = HangingLaunch::start(&world).await;
    assert!(world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
    webhook.set(Conduct::Allow);
    assert_eq!(launch.await.unwrap().unwrap(), 1);
    let services = world.api::<Service>().list(&ListParams::default()).await.unwrap().items;
    let maps = world.api::<ConfigMap>().list(&ListParams::default()).await.unwrap().items;
    let of_driver = |name: &Option<String>| name.as_ref().is_some_and(|name| name.starts_with("spark-drv"));
    assert!(services.is_empty() && !maps.iter().any(|map| of_driver(&map.metadata.name)), "{services:?}, {maps:?}");
    world.service.launcher.work().await.unwrap();
    world.until(&id, DriverState::Killed).await;
    world.until_no_driver().await;
    assert_eq!(world.events(&id).await, ["QUEUED", "LAUNCHING", "KILLING", "KILLED"]);
    webhook.remove().await;
}

#[sqlx::test]
async fn kill_of_a_pending_driver_deletes_its_pod(pool: PgPool) {
    let mut world = World::new(pool).await;
    world.watch();
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    assert!(world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
    world.service.launcher.work().await.unwrap();
    world.until(&id, DriverState::Killed).await;
    world.until_no_driver().await;
    assert_eq!(world.events(&id).await, ["QUEUED", "LAUNCHING", "PENDING", "KILLING", "KILLED"]);
}

#[sqlx::test]
async fn kill_of_a_running_driver_waits_for_its_grace_period(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = running_on_a_node(&mut world).await;
    assert!(world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
    world.service.launcher.work().await.unwrap();
    eventually(|| async { world.driver().await.metadata.deletion_timestamp.ok_or("not deleted") }).await;
    assert_eq!(world.status(&id).await.driver_state, DriverState::Running, "it runs until its grace period is over");
    world.play_exit(143).await;
    world.until(&id, DriverState::Killed).await;
    assert_eq!(world.exit_code(&id).await, Some(143));
    world.remove_driver().await;
    assert_eq!(world.status(&id).await.driver_state, DriverState::Killed);
}

#[sqlx::test]
async fn kill_after_the_end_changes_nothing(pool: PgPool) {
    let mut world = World::new(pool).await;
    world.watch();
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    world.play_exit(0).await;
    world.until(&id, DriverState::Finished).await;
    assert!(!world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
    assert_eq!(world.status(&id).await.driver_state, DriverState::Finished);
}

#[sqlx::test]
async fn deletion_of_the_pod_from_outside_ends_as_killed(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = running_on_a_node(&mut world).await;
    let name = world.driver().await.metadata.name.unwrap();
    world.pods().delete(&name, &kube::api::DeleteParams::default()).await.unwrap();
    world.play_exit(143).await;
    let status = world.until(&id, DriverState::Killed).await;
    assert!(status.message.unwrap().contains("deleted from outside Sparkgate"));
}

/// Returns a submission whose driver runs on a node, so that its pod has a grace period; an unbound pod is deleted at
/// once.
async fn running_on_a_node(world: &mut World) -> SubmissionId {
    let id = world.submit_running().await;
    bind(world).await;
    id
}

pub(crate) async fn bind(world: &World) {
    let name = world.driver().await.metadata.name.unwrap();
    let binding = serde_json::json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"}});
    let path = format!("/api/v1/namespaces/{}/pods/{name}/binding", world.namespace);
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(serde_json::to_vec(&binding).unwrap()).unwrap();
    world.admin.request_text(request).await.unwrap();
}
