//! Retries: another attempt after a failed one.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use kube::{
    ResourceExt,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;
use sparkgate::{
    service::CleanUpSettings,
    submission::{DriverState, State, SubmissionId},
};
use sqlx::PgPool;

use crate::world::{World, eventually};

/// Creates a submission that may be retried, and whose driver runs.
async fn running(world: &mut World, budget: &str) -> SubmissionId {
    let id = world.submit_running().await;
    world.set(&id, budget).await;
    id
}

async fn evict(world: &World, pod: Pod) {
    let status = json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}});
    world.pods().patch_status(&pod.name_any(), &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

async fn until_attempt(world: &World, id: &SubmissionId, attempt: i32) {
    eventually(|| async {
        let attempts = world.service.submissions.attempts(&world.service.anonymous(), id).await.unwrap();
        (attempts.last().unwrap().attempt == attempt).then_some(()).ok_or(attempts)
    })
    .await;
}

/// Launches the next attempt, as if the pause before it were over.
async fn launch(world: &World, id: &SubmissionId) {
    assert_eq!(world.service.launcher.work().await.unwrap(), 0, "there is a pause");
    world.set(id, "not_before = NULL").await;
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
}

async fn states(world: &World, id: &SubmissionId) -> Vec<State> {
    world
        .service
        .submissions
        .attempts(&world.service.anonymous(), id)
        .await
        .unwrap()
        .iter()
        .map(|attempt| attempt.state)
        .collect()
}

#[sqlx::test]
async fn an_evicted_driver_is_followed_by_another_under_its_own_names(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = running(&mut world, "max_retries_infrastructure = 1").await;
    let first = world.driver().await;
    evict(&world, first.clone()).await;
    until_attempt(&world, &id, 2).await;
    assert_eq!(world.status(&id).await.driver_state, DriverState::Submitted);
    launch(&world, &id).await;

    let second = world.driver_of(2).await;
    assert_ne!(second.name_any(), first.name_any());
    let app_id = |pod: &Pod| pod.labels()["spark-app-selector"].clone();
    assert_ne!(app_id(&second), app_id(&first));
    assert_eq!(second.labels()["sparkgate.dev/submission-id"], id.as_str());
    let mine = |owners: &[k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference]| {
        owners.iter().any(|owner| Some(&owner.uid) == second.metadata.uid.as_ref())
    };
    let maps = world.api::<ConfigMap>().list(&ListParams::default()).await.unwrap().items;
    let map = maps.into_iter().find(|map| mine(map.owner_references())).unwrap();
    let properties = &map.data.unwrap()["spark.properties"];
    for line in [
        "spark.kubernetes.executor.label.sparkgate.dev/attempt=2".to_owned(),
        format!("spark.app.id={}", app_id(&second)),
        format!("spark.kubernetes.driver.pod.name={}", second.name_any()),
    ] {
        assert!(properties.lines().any(|other| other == line), "{line}: {properties}");
    }
    let services = world.api::<Service>().list(&ListParams::default()).await.unwrap().items;
    let service = services.into_iter().find(|service| mine(service.owner_references())).unwrap();
    assert_eq!(service.spec.unwrap().selector.unwrap()["spark-app-selector"], app_id(&second));

    world.play_on(second, "Running", json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})).await;
    world.until(&id, DriverState::Running).await;
    let end = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
    world.play_on(world.driver_of(2).await, "Succeeded", end).await;
    world.until(&id, DriverState::Finished).await;
    assert_eq!(states(&world, &id).await, [State::Failed, State::Finished]);
    let attempts = world.service.submissions.attempts(&world.service.anonymous(), &id).await.unwrap();
    assert_eq!(attempts[0].pod, first.name_any());
    assert_eq!(attempts[0].reason.as_deref(), Some("Evicted"));
    let all = ["QUEUED", "LAUNCHING", "PENDING", "RUNNING", "FAILED"];
    let all = [&all[..], &["QUEUED", "LAUNCHING", "PENDING", "RUNNING", "FINISHED"]].concat();
    assert_eq!(world.events(&id).await, all);
    eventually(|| async {
        let held = world.driver_of(1).await.finalizers().to_vec();
        if held.is_empty() { Ok(()) } else { Err(held) }
    })
    .await;

    let at_once = CleanUpSettings { finished_pod_ttl: Some(Duration::ZERO), retention: None };
    assert_eq!(world.service.leadership.clean_up(&at_once).await.unwrap().pods, 2);
    world.until_no_driver().await;
    assert_eq!(world.service.leadership.clean_up(&at_once).await.unwrap().pods, 0);
}

#[sqlx::test]
async fn an_exit_code_is_final_unless_retries_of_the_application_were_asked_for(pool: PgPool) {
    let mut world = World::new(pool.clone()).await;
    let id = running(&mut world, "max_retries_infrastructure = 2").await;
    world.play_exit(3).await;
    world.until(&id, DriverState::Failed).await;
    assert_eq!(states(&world, &id).await, [State::Failed]);

    let mut world = World::new(pool).await;
    let id = running(&mut world, "max_retries_application = 1").await;
    world.play_exit(3).await;
    until_attempt(&world, &id, 2).await;
    launch(&world, &id).await;
    let end = json!({"terminated": {"exitCode": 4, "reason": "Error"}});
    world.play_on(world.driver_of(2).await, "Failed", end).await;
    world.until(&id, DriverState::Failed).await;
    assert_eq!(states(&world, &id).await, [State::Failed, State::Failed]);
    assert_eq!(world.exit_code(&id).await, Some(4));
}

#[sqlx::test]
async fn a_kill_in_the_pause_between_attempts_is_the_end(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = running(&mut world, "max_retries_infrastructure = 2").await;
    evict(&world, world.driver().await).await;
    until_attempt(&world, &id, 2).await;
    assert!(world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
    assert_eq!(world.status(&id).await.driver_state, DriverState::Killed);
    assert_eq!(world.service.launcher.work().await.unwrap(), 0);
    assert_eq!(world.driver_count().await, 1, "the pod of the first attempt, with its log");
}

/// The launcher of the second attempt died right after its claim: the row still names the objects of the first attempt.
#[sqlx::test]
async fn a_kill_before_an_attempt_has_objects_leaves_earlier_ones_alone(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = running(&mut world, "max_retries_infrastructure = 2").await;
    evict(&world, world.driver().await).await;
    until_attempt(&world, &id, 2).await;
    world.set(&id, "state = 'LAUNCHING', not_before = NULL").await;
    assert!(world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
    assert_eq!(world.status(&id).await.driver_state, DriverState::Killed);
    assert!(world.driver().await.metadata.deletion_timestamp.is_none());
}

#[sqlx::test]
async fn a_lost_driver_is_tried_again_only_if_that_was_asked_for(pool: PgPool) {
    for (budget, attempts) in [
        ("max_retries_application = 1", vec![State::Lost]),
        ("max_retries_infrastructure = 1", vec![State::Lost, State::Queued]),
    ] {
        let mut world = World::without_finalizer(pool.clone()).await;
        let id = world.submit(&[]).await;
        world.set(&id, budget).await;
        world.service.launcher.work().await.unwrap();
        world.play_running().await;
        world.remove_driver().await;
        world.watch();
        eventually(|| async {
            let states = states(&world, &id).await;
            (states == attempts).then_some(()).ok_or(states)
        })
        .await;
    }
}

/// The launcher stored the names and died: the next one uses these names.
#[sqlx::test]
async fn the_names_of_an_attempt_are_generated_once(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = running(&mut world, "max_retries_infrastructure = 1").await;
    evict(&world, world.driver().await).await;
    until_attempt(&world, &id, 2).await;
    launch(&world, &id).await;
    let second = world.driver_of(2).await.metadata.uid;
    let kept = world.service.submissions.attempts(&world.service.anonymous(), &id).await.unwrap()[1].pod.clone();
    world.set(&id, "state = 'LAUNCHING', pod_uid = NULL").await;
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
    let again = world.driver_of(2).await;
    assert_eq!((again.name_any(), again.metadata.uid), (kept, second));
}
