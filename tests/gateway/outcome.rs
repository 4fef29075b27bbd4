//! Changes in the cluster become states, with or without a watch at that time.

use kube::api::DeleteParams;
use serde_json::json;
use sparkgate::{
    cluster::{Cluster, WatchReport},
    submission::{DriverState, engine::Found},
};
use sparkgate_testing::wait::until;
use sqlx::PgPool;

use crate::world::{World, eventually};

/// A standby that lacked the last commits was promoted.
#[sqlx::test]
async fn an_end_that_the_database_lost_is_recorded_again(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    world.service.events.publish().await.unwrap();
    let sessions = "SELECT name FROM leases WHERE name LIKE 'replica/%'";
    let before: Vec<String> = sqlx::query_scalar(sessions).fetch_all(&world.pool).await.unwrap();
    world.play_exit(0).await;
    world.until(&id, DriverState::Finished).await;
    world.service.events.publish().await.unwrap();

    let lost = "BEGIN;
        DELETE FROM submission_events WHERE state = 'FINISHED';
        UPDATE event_sequence SET last = last - 1;
        UPDATE submissions SET state = 'RUNNING', finished_at = NULL, exit_code = NULL, pod_ended_at = NULL;
        CREATE OR REPLACE FUNCTION database_history() RETURNS text LANGUAGE sql STABLE AS $$ SELECT '1/00000002/1' $$;
        COMMIT";
    sqlx::raw_sql(lost).execute(&world.pool).await.unwrap();
    world.service.events.publish().await.unwrap();
    world.until(&id, DriverState::Finished).await;
    // Claims and leases of the lost history are void. Rows of sessions that have ended are deleted now and then.
    until("the replica has another session", async || {
        let after: Vec<String> = sqlx::query_scalar(sessions).fetch_all(&world.pool).await.unwrap();
        after.iter().any(|session| !before.contains(session))
    })
    .await;
}

#[sqlx::test]
async fn a_driver_runs_and_finishes(pool: PgPool) {
    let mut world = World::new(pool).await;
    world.watch();
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    world.play_running().await;
    let running = world.until(&id, DriverState::Running).await;
    assert_eq!(running.message, None);
    world.play_exit(0).await;
    assert_eq!(world.until(&id, DriverState::Finished).await.message, None);
    assert_eq!(world.exit_code(&id).await, Some(0));
    assert_eq!(world.events(&id).await, ["QUEUED", "LAUNCHING", "PENDING", "RUNNING", "FINISHED"]);
}

#[sqlx::test]
async fn an_exit_code_is_recorded_and_shown(pool: PgPool) {
    let mut world = World::new(pool).await;
    world.watch();
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    world.play_exit(3).await;
    let status = world.until(&id, DriverState::Failed).await;
    assert_eq!(status.message.as_deref(), Some("the driver exited with code 3 (Error)"));
    assert_eq!(world.exit_code(&id).await, Some(3));
}

#[sqlx::test]
async fn a_failing_image_pull_is_shown_while_the_driver_waits(pool: PgPool) {
    let mut world = World::new(pool).await;
    world.watch();
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    world.play("Pending", json!({"waiting": {"reason": "ErrImagePull", "message": "no such image"}})).await;
    eventually(|| async {
        let status = world.status(&id).await;
        assert_eq!(status.driver_state, DriverState::Submitted);
        status.message.filter(|text| text == "ErrImagePull: no such image").ok_or("no message")
    })
    .await;
    world.play_running().await;
    assert_eq!(world.until(&id, DriverState::Running).await.message, None, "the reason is removed");
}

#[sqlx::test]
async fn an_end_without_a_watch_is_found_by_the_next_watch(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    world.look_away();
    world.play_exit(7).await;
    let mut restarted = World::on(world.pool.clone(), world.client.clone(), world.namespace.clone()).await;
    restarted.watch();
    restarted.until(&id, DriverState::Failed).await;
    assert_eq!(restarted.exit_code(&id).await, Some(7));
}

#[sqlx::test]
async fn a_driver_that_failed_and_was_deleted_without_a_watch_has_failed(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    world.look_away();
    let long_ago = json!({"exitCode": 7, "reason": "Error", "finishedAt": "2020-01-01T00:00:00Z"});
    world.play("Failed", json!({ "terminated": long_ago })).await;
    let name = world.driver().await.metadata.name.unwrap();
    world.pods().delete(&name, &DeleteParams::default()).await.unwrap();
    let mut restarted = World::on(world.pool.clone(), world.client.clone(), world.namespace.clone()).await;
    restarted.watch();
    restarted.until(&id, DriverState::Failed).await;
    assert_eq!(restarted.exit_code(&id).await, Some(7));
    assert_eq!(restarted.events(&id).await.last().unwrap(), "FAILED");
}

#[sqlx::test]
async fn a_termination_message_with_invalid_characters_is_cleaned(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    let said = format!("a\0b{}", "x".repeat(100_000));
    world.play("Failed", json!({"terminated": {"exitCode": 1, "reason": "Error", "message": said}})).await;
    let message = world.until(&id, DriverState::Failed).await.message.unwrap();
    assert!(message.starts_with("the driver exited with code 1 (Error): a\u{fffd}bxxx"), "{message}");
}

#[sqlx::test]
async fn a_pod_that_vanished_without_a_watch_is_lost_with_a_message(pool: PgPool) {
    let mut world = World::without_finalizer(pool).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    world.play_running().await;
    world.remove_driver().await;
    world.watch();
    let status = world.until(&id, DriverState::Error).await;
    assert!(status.message.unwrap().contains("can't be known"));
    assert_eq!(world.events(&id).await.last().unwrap(), "LOST");
}

#[sqlx::test]
async fn a_live_driver_of_an_ended_submission_is_reaped(pool: PgPool) {
    let mut world = World::new(pool).await;
    world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    sqlx::query("UPDATE submissions SET state = 'KILLED'").execute(&world.pool).await.unwrap();
    world.watch();
    world.until_no_driver().await;
}

#[sqlx::test]
async fn a_late_driver_of_a_submission_that_knows_another_is_reaped(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    sqlx::query("UPDATE submissions SET pod_uid = 'the-first'").execute(&world.pool).await.unwrap();
    world.watch();
    world.until_no_driver().await;
    world.until(&id, DriverState::Error).await;
    assert_eq!(world.events(&id).await.last().unwrap(), "LOST", "its own pod was deleted");
}

#[sqlx::test]
async fn a_stale_observation_does_not_delete_a_finished_driver(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    world.play_running().await;
    let name = world.driver().await.metadata.name.unwrap();
    let cluster = Cluster::new(world.client.clone(), &[]);
    let found = cluster.find_driver(&world.namespace, &name, &id, 1).await.unwrap();
    let Found::There(running) = found else { panic!("{found:?}") };
    world.play_exit(0).await;
    let found = cluster.find_driver(&world.namespace, &name, &id, 1).await.unwrap();
    let Found::There(ended) = found else { panic!("{found:?}") };
    world.service.pods.process_reports(None, [WatchReport::Driver(ended), WatchReport::Driver(running)]).await;
    assert_eq!(world.driver_count().await, 1, "the pod stays, with its log");
    assert_eq!(world.status(&id).await.driver_state, DriverState::Finished);
}
