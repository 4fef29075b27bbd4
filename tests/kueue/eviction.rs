//! Quota that Kueue takes back.

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use sqlx::PgPool;

use crate::world::{Quota, World, create_priority};

/// Two queues lend each other what they don't use.
#[sqlx::test]
async fn a_preempted_driver_is_ended_and_waits_in_the_queue_again(pool: PgPool) {
    let cohort = format!("cohort-{}", uuid::Uuid::new_v4().simple());
    let preemption = json!({"reclaimWithinCohort": "Any"});
    let quota = Quota { cores: 2, cohort: Some(&cohort), preemption, ..Quota::default() };
    let (borrower, lender) = World::two(pool, quota).await;
    let id = borrower.submit(1).await;
    borrower.until(&id, 1, "PENDING").await;
    borrower.play_running(&borrower.driver(&id, 1).await).await;
    let second = borrower.submit(1).await;
    borrower.until(&second, 1, "PENDING").await;
    let borrowed = borrower.driver(&second, 1).await;
    borrower.play_running(&borrowed).await;
    borrower.until(&second, 1, "RUNNING").await;

    let own = [("spark.kubernetes.namespace", lender.as_str()), ("spark.executor.instances", "1")];
    let owner = borrower.submit_with(&own).await;
    borrower.play_removal(&borrowed).await;
    borrower.until(&owner, 1, "PENDING").await;
    borrower
        .until_so("another attempt waits", async || match borrower.row(&second).await {
            (state, 2, _) if state == "QUEUED" || state == "LAUNCHING" => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    let first: (String, Option<String>) = sqlx::query_as("SELECT state, reason FROM attempts WHERE submission_id = $1")
        .bind(second.as_str())
        .fetch_one(&borrower.pool)
        .await
        .unwrap();
    assert_eq!(first, ("FAILED".to_owned(), Some("EvictedByKueue".to_owned())));
    let counted: (i32, i32) =
        sqlx::query_as("SELECT retried_infrastructure, retried_application FROM submissions WHERE id = $1")
            .bind(second.as_str())
            .fetch_one(&borrower.pool)
            .await
            .unwrap();
    assert_eq!(counted, (0, 0), "it uses no budget");
    assert_eq!(borrower.row(&id).await.0, "RUNNING", "the driver within its own quota stays");
}

#[sqlx::test]
async fn a_more_urgent_submission_preempts_a_driver_of_its_own_queue(pool: PgPool) {
    let preemption = json!({"withinClusterQueue": "LowerPriority"});
    let world = World::with(pool, Quota { cores: 2, preemption, ..Quota::default() }).await;
    let low = world.submit(1).await;
    let driver = world.driver(&low, 1).await;
    world.until(&low, 1, "PENDING").await;
    let class = create_priority(&world.admin, 100).await;
    let urgent = world.with_priority(&class).await;
    let high = urgent.submit(1).await;
    urgent.play_removal(&driver).await;
    urgent.until(&high, 1, "PENDING").await;
    urgent
        .until_so("the other waits as its second attempt", async || match urgent.row(&low).await {
            (_, 2, _) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
}

#[sqlx::test]
async fn a_deactivated_workload_ends_its_driver_and_the_next_attempt_has_another(pool: PgPool) {
    let world = World::new(pool, 2).await;
    let id = world.submit(1).await;
    let driver = world.driver(&id, 1).await;
    world.play_running(&driver).await;
    world.until(&id, 1, "RUNNING").await;
    let name = driver.metadata.name.clone().unwrap();
    let patch = Patch::Merge(json!({"spec": {"active": false}}));
    world.workload_api().patch(&name, &PatchParams::default(), &patch).await.unwrap();
    world.play_removal(&driver).await;
    world.until(&id, 2, "PENDING").await;
    world
        .until_so("the first Workload is gone", async || match world.workload_api().get_opt(&name).await.unwrap() {
            None => Ok(()),
            Some(workload) => Err(workload.data.to_string()),
        })
        .await;
}

#[sqlx::test]
async fn a_driver_whose_workload_was_deleted_is_ended(pool: PgPool) {
    let world = World::new(pool, 2).await;
    let id = world.submit(1).await;
    let driver = world.driver(&id, 1).await;
    world.play_running(&driver).await;
    world.until(&id, 1, "RUNNING").await;
    world
        .until_so("the follower knows the Workload", async || {
            let held: Option<String> = sqlx::query_scalar("SELECT holder::text FROM leases WHERE name = 'kueue'")
                .fetch_optional(&world.pool)
                .await
                .unwrap();
            held.map(drop).ok_or_else(|| "no replica follows".to_owned())
        })
        .await;
    let name = driver.metadata.name.clone().unwrap();
    world.workload_api().delete(&name, &DeleteParams::default()).await.unwrap();
    world.play_removal(&driver).await;
    world.until(&id, 2, "PENDING").await;
}

/// The launch died after it had created the `Workload`, and the record was deleted.
#[sqlx::test]
async fn a_workload_without_a_submission_is_deleted(pool: PgPool) {
    let world = World::new(pool, 2).await;
    let id = world.submit(5).await;
    world.until(&id, 1, "ERROR").await;
    let running = world.submit(1).await;
    let driver = world.driver(&running, 1).await;
    world.play_end(&driver, 0).await;
    world.until(&running, 1, "FINISHED").await;
    sqlx::query("DELETE FROM submissions").execute(&world.pool).await.unwrap();
    world.until_no_workload().await;
}
