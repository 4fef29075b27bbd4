//! Usage on a real API server: what the pods request there, and how long their nodes say that they ran, also in the absence of the
//! gateway.

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use sparkgate::{
    cluster::labels,
    submission::{DriverState, SubmissionId},
};
use sqlx::PgPool;

use crate::world::{World, eventually};

/// Creates an executor pod of the driver, with two containers.
async fn executor(world: &World, id: &SubmissionId, number: u32) -> String {
    let driver = world.driver().await.metadata;
    let requests = |cpu: &str, memory: &str| json!({"requests": {"cpu": cpu, "memory": memory}});
    let name = format!("exec-{number}");
    let pod = json!({
        "metadata": {"name": name, "labels": {"spark-role": "executor", "spark-exec-id": number.to_string(),
            labels::SUBMISSION_ID: id.to_string(), labels::ATTEMPT: "1",
            labels::INSTANCE: world.service.submissions.instance().to_string()},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": driver.name, "uid": driver.uid, "controller": true}]},
        "spec": {"containers": [
            {"name": "spark-kubernetes-executor", "image": "spark", "resources": requests("2", "4Gi")},
            {"name": "logger", "image": "logger", "resources": requests("250m", "256Mi")}]},
    });
    world.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    name
}

/// Reports as a kubelet that Spark's container of a pod is in a state, since its node accepted the pod at 10 o'clock.
async fn play(world: &World, pod: &str, container: &str, phase: &str, state: Value) {
    let status = json!({"status": {"phase": phase, "startTime": "2026-01-01T10:00:00Z", "containerStatuses": [{"name": container,
        "image": "spark", "imageID": "", "ready": true, "restartCount": 0, "state": state}]}});
    world.pods().patch_status(pod, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

#[sqlx::test]
async fn pods_count_by_their_requests_until_the_end_that_their_node_reports(pool: PgPool) {
    const DRIVER: &str = "spark-kubernetes-driver";
    const EXECUTOR: &str = "spark-kubernetes-executor";
    let mut world = World::new(pool).await;
    world.watch();
    let id = world.submit(&[("spark.driver.cores", "3"), ("spark.driver.memory", "2g")]).await;
    world.set(&id, "created_at = '2026-01-01T09:00:00Z', queued_at = '2026-01-01T09:00:00Z'").await;
    world.service.launcher.work().await.unwrap();
    let driver = world.driver().await.metadata.name.unwrap();
    let running = json!({"running": {"startedAt": "2026-01-01T10:01:00Z"}});
    play(&world, &driver, DRIVER, "Running", running.clone()).await;
    world.until(&id, DriverState::Running).await;
    let (ended, vanished) = (executor(&world, &id, 1).await, executor(&world, &id, 2).await);
    for pod in [&ended, &vanished] {
        play(&world, pod, EXECUTOR, "Running", running.clone()).await;
    }
    eventually(|| async {
        let count: i64 = sqlx::query_scalar("SELECT count(*) FROM executors WHERE state = 'RUNNING'")
            .fetch_one(&world.pool)
            .await
            .unwrap();
        (count == 2).then_some(()).ok_or(count)
    })
    .await;

    // All of them end while no gateway watches; one leaves no trace.
    world.look_away();
    let exit = |at: &str| {
        json!({"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": "2026-01-01T10:01:00Z",
            "finishedAt": format!("2026-01-01T{at}Z")}})
    };
    play(&world, &ended, EXECUTOR, "Succeeded", exit("11:00:00")).await;
    world.pods().delete(&vanished, &DeleteParams::default().grace_period(0)).await.unwrap();
    play(&world, &driver, DRIVER, "Succeeded", exit("12:00:00")).await;

    let mut restarted = World::on(world.pool.clone(), world.client.clone(), world.namespace.clone()).await;
    restarted.watch();
    restarted.until(&id, DriverState::Finished).await;
    eventually(|| async {
        let live: i64 = sqlx::query_scalar("SELECT count(*) FROM executors WHERE finished_at IS NULL")
            .fetch_one(&restarted.pool)
            .await
            .unwrap();
        (live == 0).then_some(()).ok_or(live)
    })
    .await;
    let service = &restarted.service;
    let document = service.submissions.document(&service.anonymous(), &id, &service.usage).await.unwrap().unwrap();
    let used = document.usage.unwrap().total;
    // The driver: three cores, 2 GiB and their overhead of 384 MiB for two hours.
    assert_eq!(used.driver.core_seconds, (3 * 2 * 3600).to_string());
    assert_eq!(used.driver.memory_byte_seconds, ((2048_u64 + 384) * (1 << 20) * 2 * 3600).to_string());
    // One executor for an hour, and one until the end of the driver.
    assert_eq!(used.executors.core_seconds, (2250 * 3 * 3600 / 1000).to_string());
    assert_eq!(used.executors.memory_byte_seconds, ((4096_u64 + 256) * (1 << 20) * 3 * 3600).to_string());
    assert_eq!(used.estimated.core_seconds, (2250 * 2 * 3600 / 1000).to_string());
}
