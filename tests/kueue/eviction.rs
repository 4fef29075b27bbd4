//! Quota that Kueue takes back.

use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use sqlx::PgPool;

use crate::world::{Quota, World, create_priority};

/// Two queues lend each other what they don't use. Kueue chooses the driver that was admitted last, by whole seconds: of two that were
/// admitted in the same second, it may be either.
#[sqlx::test]
async fn a_preempted_driver_is_ended_and_waits_in_the_queue_again(pool: PgPool) {
    let cohort = format!("cohort-{}", uuid::Uuid::new_v4().simple());
    let preemption = json!({"reclaimWithinCohort": "Any"});
    let quota = Quota { cores: 2, cohort: Some(&cohort), preemption, ..Quota::default() };
    let (borrower, lender) = World::two(pool, quota).await;
    let ids = [borrower.submit(1).await, borrower.submit(1).await];
    for id in &ids {
        borrower.play_running(&borrower.driver(id, 1).await).await;
        borrower.until(id, 1, "RUNNING").await;
    }

    let own = [("spark.kubernetes.namespace", lender.as_str()), ("spark.executor.instances", "1")];
    let owner = borrower.submit_with(&own).await;
    borrower
        .until_so("the owner of the quota has its driver", async || {
            borrower.play_removals().await;
            match borrower.row(&owner).await {
                (state, 1, _) if state == "PENDING" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
    let (evicted, kept) = borrower
        .until_so("one of the borrowers waits with another attempt", async || {
            borrower.play_removals().await;
            let rows = [borrower.row(&ids[0]).await, borrower.row(&ids[1]).await];
            let waits = |row: &(String, i32, _)| row.1 > 1 && (row.0 == "QUEUED" || row.0 == "LAUNCHING");
            match rows.iter().position(waits) {
                Some(evicted) => Ok((&ids[evicted], &ids[1 - evicted])),
                None => Err(format!("{rows:?}")),
            }
        })
        .await;
    assert_eq!(borrower.row(kept).await, ("RUNNING".to_owned(), 1, None), "the quota of one was enough");
    let first: (String, Option<String>) =
        sqlx::query_as("SELECT state, reason FROM attempts WHERE submission_id = $1 AND attempt = 1")
            .bind(evicted.as_str())
            .fetch_one(&borrower.pool)
            .await
            .unwrap();
    assert_eq!(first, ("FAILED".to_owned(), Some("EvictedByKueue".to_owned())));
    let counted: (i32, i32) =
        sqlx::query_as("SELECT retried_infrastructure, retried_application FROM submissions WHERE id = $1")
            .bind(evicted.as_str())
            .fetch_one(&borrower.pool)
            .await
            .unwrap();
    assert_eq!(counted, (0, 0), "it uses no budget");
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
