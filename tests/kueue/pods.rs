//! Plain pods: Kueue's webhook holds the driver back, and the gateway lets it.

use kube::api::{Patch, PatchParams};
use serde_json::json;
use sparkgate::submission::{FailureCode, State};
use sqlx::PgPool;

use crate::world::{Quota, World};

const QUEUE: &str = "spark.kubernetes.driver.label.kueue.x-k8s.io/queue-name";

/// Removes the queue from the gateway's settings: only the label names it.
async fn plain(pool: PgPool, cores: u32) -> World {
    World::with_plain_pods(pool, Quota { cores, ..Quota::default() }).await
}

#[sqlx::test]
async fn a_driver_that_kueue_holds_back_waits_and_then_runs(pool: PgPool) {
    let world = plain(pool, 1).await;
    let queue = world.namespace.clone();
    let first = world.submit_with(&[(QUEUE, &queue)]).await;
    let driver = world.driver(&first, 1).await;
    assert!(driver.metadata.finalizers.unwrap().iter().any(|name| name == "kueue.x-k8s.io/managed"));
    world
        .until_so("Kueue has removed its gate", async || {
            let pod = world.driver(&first, 1).await;
            let gates = pod.spec.unwrap().scheduling_gates.unwrap_or_default();
            if gates.is_empty() { Ok(()) } else { Err(format!("{gates:?}")) }
        })
        .await;
    world.play_running(&world.driver(&first, 1).await).await;
    world.until(&first, 1, "RUNNING").await;

    let second = world.submit_with(&[(QUEUE, &queue)]).await;
    let held = world.driver(&second, 1).await;
    assert_eq!(held.spec.unwrap().scheduling_gates.unwrap()[0].name, "kueue.x-k8s.io/admission");
    world.until(&second, 1, "PENDING").await;
    world.play_end(&world.driver(&first, 1).await, 0).await;
    world.until(&first, 1, "FINISHED").await;
    world
        .until_so("the second driver is admitted", async || {
            let pod = world.driver(&second, 1).await;
            if pod.spec.unwrap().scheduling_gates.is_none_or(|gates| gates.is_empty()) {
                Ok(())
            } else {
                Err("held".to_owned())
            }
        })
        .await;
}

#[sqlx::test]
async fn a_driver_that_kueue_evicts_fails_as_preempted(pool: PgPool) {
    let world = plain(pool, 1).await;
    let queue = world.namespace.clone();
    let id = world.submit_with(&[(QUEUE, &queue)]).await;
    let driver = world.driver(&id, 1).await;
    let workload = world
        .until_so("Kueue has a Workload of the pod", async || {
            world
                .workloads()
                .await
                .pop()
                .filter(|workload| workload["status"]["admission"].is_object())
                .ok_or_else(|| "none".to_owned())
        })
        .await;
    world.play_running(&driver).await;
    world.until(&id, 1, "RUNNING").await;
    let name = workload["metadata"]["name"].as_str().unwrap();
    let patch = Patch::Merge(json!({"spec": {"active": false}}));
    world.workload_api().patch(name, &PatchParams::default(), &patch).await.unwrap();
    world.play_removal(&driver).await;
    world.until(&id, 1, "FAILED").await;
    let (_, _, reason) = world.row(&id).await;
    assert_eq!(reason.as_deref(), Some("WorkloadEvictedDueToDeactivated"));
    let code = FailureCode::for_end(State::Failed, Some(143), reason.as_deref(), None);
    assert_eq!(code, Some(FailureCode::Preempted));
}
