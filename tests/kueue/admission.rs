//! What Kueue admits, holds and never admits.

use kube::api::DeleteParams;
use serde_json::{Value, json};
use sqlx::PgPool;

use crate::{
    controller::kueue_alone,
    world::{MEMORY, Quota, World, create_priority},
};

#[sqlx::test]
async fn an_admitted_attempt_is_launched_and_gives_its_quota_back_at_its_end(pool: PgPool) {
    let world = World::new(pool, 3).await;
    let id = world.submit(2).await;
    let driver = world.driver(&id, 1).await;
    world.until(&id, 1, "PENDING").await;
    let labels = driver.metadata.labels.as_ref().unwrap();
    assert!(labels.keys().all(|key| !key.contains("kueue")), "the pods would be queued again: {labels:?}");

    let workload = world.workloads().await.remove(0);
    assert_eq!(workload["metadata"]["name"], driver.metadata.name.clone().unwrap());
    assert_eq!(workload["metadata"]["labels"]["sparkgate.dev/submission-id"], id.to_string());
    let sets = &workload["spec"]["podSets"];
    assert_eq!((&sets[0]["count"], &sets[1]["count"]), (&json!(1), &json!(2)));
    let requests = &sets[1]["template"]["spec"]["containers"][0]["resources"]["requests"];
    assert_eq!(requests, &json!({"cpu": "1", "memory": MEMORY}));

    world.play_running(&driver).await;
    world.until(&id, 1, "RUNNING").await;
    assert!(!is_ready(&world.workloads().await[0]), "its executors don't run");
    for number in [1, 2] {
        let executor = world.play_executor(&driver, number).await;
        world.play_running(&executor).await;
    }
    world
        .until_so("Kueue knows that the pods run", async || {
            let workloads = world.workloads().await;
            if is_ready(&workloads[0]) { Ok(()) } else { Err(workloads[0]["status"].to_string()) }
        })
        .await;
    world.play_end(&driver, 0).await;
    world.until(&id, 1, "FINISHED").await;
    // An executor still has its quota.
    assert_eq!(world.workloads().await.len(), 1);
    world.pods().delete_collection(&Default::default(), &Default::default()).await.unwrap();
    for pod in world.pods().list(&Default::default()).await.unwrap() {
        let now = kube::api::DeleteParams::default().grace_period(0);
        let _ = world.pods().delete(pod.metadata.name.as_deref().unwrap(), &now).await;
    }
    world.until_no_workload().await;
}

fn is_ready(workload: &Value) -> bool {
    let mut conditions = workload["status"]["conditions"].as_array().unwrap().iter();
    conditions.any(|condition| condition["type"] == "PodsReady" && condition["status"] == "True")
}

#[sqlx::test]
async fn an_attempt_waits_for_the_quota_that_another_one_has(pool: PgPool) {
    let world = World::new(pool, 2).await;
    let first = world.submit(1).await;
    let driver = world.driver(&first, 1).await;
    world.until(&first, 1, "PENDING").await;
    let second = world.submit(1).await;
    let message = world.until_waiting(&second, "WaitingForQuota").await;
    assert!(message.contains("insufficient unused quota for cpu"), "{message}");
    let deadline = "SELECT deadline > clock_timestamp() FROM submissions WHERE id = $1";
    let waits: Option<bool> = sqlx::query_scalar(deadline).bind(second.as_str()).fetch_one(&world.pool).await.unwrap();
    assert_ne!(waits, Some(false), "the start timeout has not begun");

    world.play_end(&driver, 0).await;
    world.until(&first, 1, "FINISHED").await;
    world.until(&second, 1, "PENDING").await;
    assert_eq!(world.row(&second).await.2, None, "it waits no more");
}

/// Its pause is made longer than the test. One of more than a quarter of an hour wouldn't be believed.
#[sqlx::test]
async fn a_launch_whose_workload_was_deleted_asks_for_another(pool: PgPool) {
    let world = World::new(pool, 2).await;
    let first = world.submit(1).await;
    world.until(&first, 1, "PENDING").await;
    let second = world.submit(1).await;
    world.until_waiting(&second, "WaitingForQuota").await;
    let pause = "UPDATE submissions SET not_before = clock_timestamp() + interval '14 minutes' WHERE id = $1 AND state = 'LAUNCHING'";
    sqlx::query(pause).bind(second.as_str()).execute(&world.pool).await.unwrap();
    let of_second = async || {
        let workloads = world.workloads().await.into_iter();
        workloads
            .filter(|workload| workload["metadata"]["labels"]["sparkgate.dev/submission-id"] == second.to_string())
            .map(|workload| {
                let text = |field: &str| workload["metadata"][field].as_str().unwrap().to_owned();
                (text("name"), text("uid"))
            })
            .next()
    };
    let (name, uid) = of_second().await.unwrap();
    world.workload_api().delete(&name, &DeleteParams::default()).await.unwrap();
    world
        .until_so("there is another Workload", async || match of_second().await {
            Some((_, other)) if other != uid => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    world.until_waiting(&second, "WaitingForQuota").await;
}

#[sqlx::test]
async fn a_kill_of_a_waiting_attempt_ends_it_and_deletes_its_workload(pool: PgPool) {
    let world = World::new(pool, 2).await;
    let first = world.submit(1).await;
    world.until(&first, 1, "PENDING").await;
    let second = world.submit(1).await;
    world.until_waiting(&second, "WaitingForQuota").await;
    assert!(world.service.submissions.kill(&world.service.anonymous(), &second).await.unwrap());
    world.until(&second, 1, "KILLED").await;
    world
        .until_so("only the first has a Workload", async || match world.workloads().await.len() {
            1 => Ok(()),
            other => Err(other.to_string()),
        })
        .await;
}

#[sqlx::test]
async fn what_exceeds_the_quota_of_the_queue_is_refused(pool: PgPool) {
    let world = World::new(pool, 2).await;
    let id = world.submit(5).await;
    world.until(&id, 1, "ERROR").await;
    let message = world.status(&id).await.message.unwrap();
    assert!(message.contains("request > maximum capacity (6 > 2)"), "{message}");
    assert_eq!(world.row(&id).await.2.as_deref(), Some("ExceedsMaxQuota"));
    world.until_no_workload().await;
    assert!(world.pods().list(&Default::default()).await.unwrap().items.is_empty());
}

#[sqlx::test]
async fn dynamic_allocation_is_admitted_with_as_many_executors_as_there_is_room_for(pool: PgPool) {
    let world = World::new(pool, 4).await;
    let dynamic = [
        ("spark.dynamicAllocation.enabled", "true"),
        ("spark.dynamicAllocation.initialExecutors", "2"),
        ("spark.dynamicAllocation.maxExecutors", "8"),
    ];
    let id = world.submit_with(&dynamic).await;
    let driver = world.driver(&id, 1).await;
    world.until(&id, 1, "PENDING").await;
    let properties = world.properties(&driver).await;
    assert_eq!(properties["spark.dynamicAllocation.maxExecutors"], "3");
    assert_eq!(properties["spark.dynamicAllocation.initialExecutors"], "2");

    // Two executors are needed, and the queue could never have eight.
    let second = world.submit_with(&dynamic).await;
    world.until_waiting(&second, "WaitingForQuota").await;
    let unbounded = world.submit_with(&dynamic[..2]).await;
    world.until(&unbounded, 1, "ERROR").await;
    let message = world.status(&unbounded).await.message.unwrap();
    assert!(message.contains("spark.dynamicAllocation.maxExecutors must be set"), "{message}");
}

#[sqlx::test]
async fn a_minimum_that_the_queue_never_has_is_refused(pool: PgPool) {
    let world = World::new(pool, 2).await;
    let id = world
        .submit_with(&[
            ("spark.dynamicAllocation.enabled", "true"),
            ("spark.dynamicAllocation.minExecutors", "3"),
            ("spark.dynamicAllocation.maxExecutors", "8"),
        ])
        .await;
    world.until(&id, 1, "ERROR").await;
    assert_eq!(world.row(&id).await.2.as_deref(), Some("ExceedsMaxQuota"));
}

#[sqlx::test]
async fn driver_and_executors_run_on_the_nodes_of_their_flavor(pool: PgPool) {
    let flavor = json!({"nodeLabels": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]});
    let name = format!("spot-{}", uuid::Uuid::new_v4().simple());
    let quota = Quota { cores: 4, flavor: Some((&name, flavor)), ..Quota::default() };
    let world = World::with(pool, quota).await;
    let id = world.submit(1).await;
    let driver = world.driver(&id, 1).await;
    world.until(&id, 1, "PENDING").await;
    let spec = driver.spec.as_ref().unwrap();
    assert_eq!(spec.node_selector.as_ref().unwrap()["pool"], "spot");
    assert!(spec.tolerations.iter().flatten().any(|toleration| toleration.key.as_deref() == Some("spot")));
    let properties = world.properties(&driver).await;
    assert_eq!(properties["spark.kubernetes.executor.node.selector.pool"], "spot");
    let template = &properties["spark.kubernetes.executor.podTemplateFile"];
    assert_eq!(template, "/opt/spark/pod-template/pod-spec-template.yml");
    let mounts = spec.containers[0].volume_mounts.iter().flatten();
    assert!(mounts.into_iter().any(|mount| template.starts_with(&mount.mount_path)));

    let changes =
        "SELECT changes #>> '{0,by}' || ' ' || (changes #>> '{0,driver,nodeSelector,pool}') FROM attempt_overlays
                   WHERE submission_id = $1 AND attempt = 1";
    let changes: String = sqlx::query_scalar(changes).bind(id.as_str()).fetch_one(&world.pool).await.unwrap();
    assert_eq!(changes, "kueue spot", "the reader sees why the driver isn't what was requested");

    let other = world.submit_with(&[("spark.kubernetes.driver.node.selector.pool", "other")]).await;
    world.until_waiting(&other, "NoMatchingFlavor").await;
}

#[sqlx::test]
async fn a_priority_class_that_does_not_exist_is_waited_for(pool: PgPool) {
    let world = World::new(pool, 4).await;
    let gateway = world.with_priority("missing").await;
    let id = gateway.submit(1).await;
    let message = gateway.until_waiting(&id, "Misconfigured").await;
    assert!(message.contains("the WorkloadPriorityClass missing doesn't exist: create it"), "{message}");
}

#[sqlx::test]
async fn a_stopped_queue_holds_launches_until_it_goes_on(pool: PgPool) {
    let world = World::new(pool, 4).await;
    world.change_queue(json!({"stopPolicy": "Hold"})).await;
    let id = world.submit(1).await;
    world.until_waiting(&id, "Suspended").await;
    world.change_queue(json!({"stopPolicy": "None"})).await;
    world.until(&id, 1, "PENDING").await;
}

/// Its webhook is part of it: without Kueue, no `Workload` can be created.
#[sqlx::test]
async fn launches_wait_while_kueue_is_away_and_go_on_when_it_is_back(pool: PgPool) {
    let (controller, _alone) = kueue_alone().await;
    let world = World::alone(pool, Quota { cores: 2, ..Quota::default() }).await;
    let first = world.submit(1).await;
    let driver = world.driver(&first, 1).await;
    world.until(&first, 1, "PENDING").await;
    let waiting = world.submit(1).await;
    world.until_waiting(&waiting, "WaitingForQuota").await;

    controller.kill();
    let second = world.submit(1).await;
    let message = world.until_waiting(&second, "KueueUnavailable").await;
    assert!(message.contains("creating the Workload"), "{message}");
    world.play_running(&driver).await;
    world.until(&first, 1, "RUNNING").await;
    world.play_end(&driver, 0).await;
    world.until(&first, 1, "FINISHED").await;

    controller.run().await;
    world.until(&waiting, 1, "PENDING").await;
    let driver = world.driver(&waiting, 1).await;
    world.play_end(&driver, 0).await;
    world.until(&second, 1, "PENDING").await;
}

#[sqlx::test]
async fn launches_wait_while_the_webhook_of_kueue_is_away_and_quota_is_given_back(pool: PgPool) {
    let (controller, _alone) = kueue_alone().await;
    let world = World::alone(pool, Quota { cores: 4, ..Quota::default() }).await;
    let first = world.submit(1).await;
    let driver = world.driver(&first, 1).await;
    world.play_running(&driver).await;
    world.until(&first, 1, "RUNNING").await;

    controller.serve_webhooks(false).await;
    let second = world.submit(1).await;
    let message = world.until_waiting(&second, "KueueUnavailable").await;
    assert!(message.contains("creating the Workload") && message.contains("failed calling webhook"), "{message}");
    world.play_end(&driver, 0).await;
    world.until(&first, 1, "FINISHED").await;
    world.until_no_workload().await;

    controller.serve_webhooks(true).await;
    world.until(&second, 1, "PENDING").await;
    assert_eq!(world.workloads().await.len(), 1);
}

#[sqlx::test]
async fn a_class_of_a_queue_decides_who_is_next(pool: PgPool) {
    let world = World::new(pool, 2).await;
    let class = create_priority(&world.admin, 100).await;
    let first = world.submit(1).await;
    let driver = world.driver(&first, 1).await;
    let urgent = world.with_priority(&class).await;
    let second = urgent.submit(1).await;
    urgent.until_waiting(&second, "WaitingForQuota").await;
    let workload = urgent.workloads().await.into_iter().find(|workload| workload["spec"]["priority"] == 100);
    assert_eq!(workload.unwrap()["spec"]["priorityClassName"], class);
    urgent.play_end(&driver, 0).await;
    urgent.until(&second, 1, "PENDING").await;
}
