//! Time limits, and the grace period of a killed driver.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use sparkgate::submission::{DriverState, SubmissionId};
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;

use crate::{
    kill::bind,
    world::{World, eventually},
};

async fn reason(world: &World, id: &SubmissionId) -> Option<String> {
    let select = sqlx::query_scalar("SELECT reason FROM submissions WHERE id = $1").bind(id.as_str());
    select.fetch_one(&world.pool).await.unwrap()
}

/// Reports as a scheduler that the pod fits on no node.
async fn no_node(world: &World, message: &str) {
    let name = world.driver().await.metadata.name.unwrap();
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
    let status = Patch::Merge(json!({"status": {"conditions": [condition]}}));
    world.pods().patch_status(&name, &PatchParams::default(), &status).await.unwrap();
}

#[sqlx::test]
async fn an_unschedulable_driver_is_killed_after_its_start_timeout_with_the_reason(pool: PgPool) {
    let mut world = World::new(pool).await;
    world.watch();
    let id = world.submit(&[]).await;
    world.set(&id, "start_timeout = 600, deadline = now() + interval '600 s'").await;
    world.service.launcher.work().await.unwrap();
    for message in ["0/3 nodes are available", "0/4 nodes are available"] {
        no_node(&world, message).await;
        let unschedulable = format!("Unschedulable: {message}");
        eventually(|| async {
            let status = world.status(&id).await;
            status.message.filter(|text| *text == unschedulable).ok_or("another message")
        })
        .await;
    }
    world.service.leadership.kill_overdue().await.unwrap();
    assert_eq!(world.events(&id).await.last().unwrap(), "PENDING", "not before its time");

    world.set(&id, "deadline = now()").await;
    world.service.leadership.kill_overdue().await.unwrap();
    world.service.launcher.work().await.unwrap();
    let status = world.until(&id, DriverState::Killed).await;
    let words = "StartTimeout: not running within 10m: Unschedulable: 0/4 nodes are available";
    assert_eq!(status.message.as_deref(), Some(words));
    world.until_no_driver().await;
    assert_eq!(world.events(&id).await, ["QUEUED", "LAUNCHING", "PENDING", "KILLING", "KILLED"]);
}

#[sqlx::test]
async fn an_unschedulable_driver_with_a_budget_for_capacity_is_tried_again_in_another_pod(pool: PgPool) {
    let mut world = World::new(pool).await;
    world.watch();
    let id = world.submit(&[("spark.sparkgate.maxRetries.capacity", "1")]).await;
    for (attempt, end) in [(1, "QUEUED"), (2, "KILLED")] {
        world.set(&id, "start_timeout = 600, not_before = NULL").await;
        world.service.launcher.work().await.unwrap();
        assert_eq!(world.events(&id).await.last().unwrap(), "PENDING", "attempt {attempt}");
        no_node(&world, "0/3 nodes are available").await;
        eventually(|| async {
            let reason = reason(&world, &id).await;
            if reason.as_deref() == Some("Unschedulable") { Ok(()) } else { Err(reason) }
        })
        .await;
        world.set(&id, "deadline = now()").await;
        world.service.leadership.kill_overdue().await.unwrap();
        world.service.launcher.work().await.unwrap();
        world.until_no_driver().await;
        eventually(|| async {
            let events = world.events(&id).await;
            if events.last().is_some_and(|last| last == end) { Ok(()) } else { Err(events) }
        })
        .await;
    }
    let once = ["QUEUED", "LAUNCHING", "PENDING", "KILLING", "KILLED"];
    assert_eq!(world.events(&id).await, [once, once].concat());
    let status = world.until(&id, DriverState::Killed).await;
    let words = "StartTimeout: not running within 10m: Unschedulable: 0/3 nodes are available";
    assert_eq!(status.message.as_deref(), Some(words));
}

#[sqlx::test]
async fn a_driver_that_runs_too_long_is_killed(pool: PgPool) {
    let mut world = World::new(pool).await;
    world.watch();
    let id = world.submit(&[]).await;
    world.set(&id, "start_timeout = 600, deadline = now() + interval '600 s', run_timeout = 7200").await;
    world.service.launcher.work().await.unwrap();
    bind(&world).await;
    // Its kubelet reports that it has run for months. It was queued just now, so the clock of its node is wrong.
    world.play_running().await;
    world.until(&id, DriverState::Running).await;
    world.set(&id, "deadline = now()").await;
    world.service.leadership.kill_overdue().await.unwrap();
    assert_eq!(world.events(&id).await.last().unwrap(), "RUNNING");
    let long_ago = "queued_at = now() - interval '3 h', started_at = now() - interval '2 h', deadline = now()";
    world.set(&id, long_ago).await;
    world.service.leadership.kill_overdue().await.unwrap();
    world.service.launcher.work().await.unwrap();
    assert!(world.driver().await.metadata.deletion_timestamp.is_some());
    world.play_exit(143).await;
    let status = world.until(&id, DriverState::Killed).await;
    let words = "RunTimeout: still running after 2h: killed; the driver exited with code 143 (Error)";
    assert_eq!(status.message.as_deref(), Some(words));
    assert_eq!(world.exit_code(&id).await, Some(143));
}

#[sqlx::test]
async fn a_driver_that_succeeds_while_it_is_killed_has_finished(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    world.look_away();
    let long_ago = "queued_at = now() - interval '1 h', started_at = now() - interval '1 h'";
    world.set(&id, &format!("run_timeout = 60, deadline = now(), {long_ago}")).await;
    world.play_exit(0).await;
    world.service.leadership.kill_overdue().await.unwrap();
    assert_eq!(world.events(&id).await.last().unwrap(), "KILLING");
    world.service.launcher.work().await.unwrap();
    world.until(&id, DriverState::Finished).await;
}

/// The deadline is stored in the row, not in a process.
#[sqlx::test]
async fn a_deadline_that_passed_without_a_gateway_still_counts(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    world.set(&id, "start_timeout = 60, deadline = now() - interval '1 d'").await;
    let mut restarted = World::on(world.pool.clone(), world.client.clone(), world.namespace.clone()).await;
    restarted.watch();
    let stop = CancellationToken::new();
    let parts = [
        tokio::spawn(restarted.service.leadership.clone().run_deadlines(stop.clone())),
        tokio::spawn(restarted.service.launcher.clone().run(stop.clone())),
    ];
    restarted.until(&id, DriverState::Killed).await;
    assert_eq!(reason(&restarted, &id).await.as_deref(), Some("StartTimeout"));
    stop.cancel();
    for part in parts {
        part.await.unwrap();
    }
}

#[sqlx::test]
async fn a_killed_driver_has_the_requested_grace_period(pool: PgPool) {
    for (kill_grace, seconds) in [("7", 7), ("0", 1), ("NULL", 30)] {
        let mut world = World::new(pool.clone()).await;
        let id = world.submit_running().await;
        bind(&world).await;
        world.set(&id, &format!("kill_grace = {kill_grace}")).await;
        assert!(world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
        world.service.launcher.work().await.unwrap();
        let grace = world.driver().await.metadata.deletion_grace_period_seconds;
        assert_eq!(grace, Some(seconds), "{kill_grace}");
        world.play_exit(143).await;
        world.until(&id, DriverState::Killed).await;
    }
}
