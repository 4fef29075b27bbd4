//! Quotas of namespaces, which admit some drivers now and others later.

use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use sparkgate::submission::{DriverState, FailureCode, State, SubmissionId};
use sqlx::PgPool;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::world::{World, eventually};

/// Creates a quota. No controller runs that would write its status.
async fn limit_pods(world: &World, name: &str, hard: u32, used: u32) {
    let quota = json!({"metadata": {"name": name}, "spec": {"hard": {"pods": hard.to_string()}}});
    let quotas = world.api::<ResourceQuota>();
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
    count_pods(world, name, hard, used).await;
}

/// Counts the pods of a namespace, as the controller does some time after a pod has ended.
async fn count_pods(world: &World, name: &str, hard: u32, used: u32) {
    let status = json!({"status": {"hard": {"pods": hard.to_string()}, "used": {"pods": used.to_string()}}});
    world.api::<ResourceQuota>().patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

/// Returns why a submission waits, the message, and the number of failed tries.
async fn waits(world: &World, id: &SubmissionId) -> (FailureCode, String, i32) {
    let row = sqlx::query_as("SELECT state, reason, message, failed_tries FROM submissions WHERE id = $1");
    let row: (String, Option<String>, Option<String>, i32) =
        row.bind(id.as_str()).fetch_one(&world.pool).await.unwrap();
    let state: State = row.0.parse().unwrap();
    (FailureCode::for_row(state, None, row.1.as_deref(), row.2.as_deref()).unwrap(), row.2.unwrap_or_default(), row.3)
}

fn launch(world: &World) -> DropGuard {
    let stop = CancellationToken::new();
    tokio::spawn(world.service.launcher.clone().run(stop.clone()));
    stop.drop_guard()
}

#[sqlx::test]
async fn a_full_quota_waits_with_its_sum_until_there_is_room(pool: PgPool) {
    let world = World::new(pool).await;
    limit_pods(&world, "one", 1, 1).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    assert_eq!(world.status(&id).await.driver_state, DriverState::Submitted);
    let (code, message, failed_tries) = waits(&world, &id).await;
    assert_eq!((code, failed_tries), (FailureCode::QuotaExceeded, 0), "{message}");
    assert!(message.contains("exceeded quota: one, requested: pods=1, used: pods=1, limited: pods=1"), "{message}");

    count_pods(&world, "one", 1, 0).await;
    eventually(|| async { (world.service.launcher.work().await.unwrap() == 1).then_some(()).ok_or("a pause") }).await;
    assert_eq!(world.driver_count().await, 1);
    assert_eq!(world.status(&id).await.message, None);
}

/// The API server asks quotas before it says that an object exists.
#[sqlx::test]
async fn objects_of_an_earlier_launch_that_fill_the_quota_themselves_are_found(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    let row = "SELECT state, pod_uid FROM submissions WHERE id = $1";
    let row = async || -> (String, Option<String>) {
        sqlx::query_as(row).bind(id.as_str()).fetch_one(&world.pool).await.unwrap()
    };
    let (state, created) = row().await;
    assert_eq!((state.as_str(), created.is_some()), ("PENDING", true));
    let counts = json!({"pods": "1", "services": "1"});
    let quota = json!({"metadata": {"name": "one"}, "spec": {"hard": counts}});
    let quotas = world.api::<ResourceQuota>();
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
    let status = json!({"status": {"hard": counts, "used": counts}});
    quotas.patch_status("one", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    // Its replica died before it recorded the pod.
    let unrecorded = "UPDATE submissions SET state = 'LAUNCHING', pod_uid = NULL, claimed_by = NULL";
    sqlx::query(unrecorded).execute(&world.pool).await.unwrap();
    world.service.launcher.work().await.unwrap();
    assert_eq!(row().await, ("PENDING".to_owned(), created));
    assert_eq!(world.driver_count().await, 1);
}

#[sqlx::test]
async fn a_driver_that_never_fits_into_its_quota_ends_at_once_with_the_sum(pool: PgPool) {
    let world = World::new(pool).await;
    limit_pods(&world, "none", 0, 0).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    let status = world.status(&id).await;
    assert_eq!(status.driver_state, DriverState::Error);
    let message = status.message.unwrap();
    assert!(message.contains("exceeded quota: none") && message.contains("none has 0 in all"), "{message}");
    assert_eq!(
        FailureCode::for_end(State::Error, None, Some("Forbidden"), Some(&message)),
        Some(FailureCode::QuotaExceeded)
    );
    // The namespace may have room for no other either: those behind it try one at a time.
    let behind = [world.submit(&[]).await, world.submit(&[]).await];
    eventually(|| async { (world.service.launcher.work().await.unwrap() == 1).then_some(()).ok_or("a pause") }).await;
    assert_eq!(world.events(&behind[1]).await, ["QUEUED"]);
}

#[sqlx::test]
async fn a_limit_range_refuses_at_once_with_its_limit(pool: PgPool) {
    let world = World::new(pool).await;
    let range =
        json!({"metadata": {"name": "small"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "500m"}}]}});
    let ranges = world.api::<LimitRange>();
    ranges.create(&PostParams::default(), &serde_json::from_value(range).unwrap()).await.unwrap();
    // The API server reads limits from a cache.
    let refused = eventually(|| async {
        let id = world.submit(&[("spark.kubernetes.driver.limit.cores", "1")]).await;
        world.service.launcher.work().await.unwrap();
        let status = world.status(&id).await;
        (status.driver_state == DriverState::Error).then_some(status).ok_or("created")
    })
    .await;
    assert!(refused.message.unwrap().contains("maximum cpu usage per Container is 500m, but limit is 1"));
}

#[sqlx::test]
async fn a_full_namespace_runs_its_jobs_one_after_the_other_and_delays_no_other(pool: PgPool) {
    let (mut full, free) = World::two(pool).await;
    full.watch();
    limit_pods(&full, "one", 1, 0).await;
    let mut left = Vec::new();
    for _ in 0..10 {
        left.push(full.submit(&[]).await);
    }
    let all = left.clone();
    let _launching = launch(&full);
    for round in 0..10 {
        let runs = eventually(|| async {
            for id in &left {
                if full.events(id).await.last().unwrap() == "PENDING" {
                    return Ok(id.clone());
                }
            }
            Err("none is launched")
        })
        .await;
        assert_eq!(full.driver_count().await, round + 1, "one after the other");
        if round == 0 {
            let mut others = Vec::new();
            for _ in 0..10 {
                others.push(free.submit(&[]).await);
            }
            for id in &others {
                eventually(|| async {
                    let states = free.events(id).await;
                    (states.last().unwrap() == "PENDING").then_some(()).ok_or(states)
                })
                .await;
            }
        }
        left.retain(|id| *id != runs);
        for id in &left {
            let (code, message, failed_tries) = waits(&full, id).await;
            assert!(matches!(code, FailureCode::QuotaExceeded | FailureCode::Queued), "{code} {message}");
            assert_eq!(failed_tries, 0);
        }
        full.play_end_of(&runs).await;
        full.until(&runs, DriverState::Finished).await;
        count_pods(&full, "one", 1, 0).await;
    }
    for id in &all {
        assert_eq!(full.status(id).await.driver_state, DriverState::Finished);
    }
}
