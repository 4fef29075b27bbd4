//! Drivers that a kubelet may start a second time. An attempt's driver runs once.

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use sparkgate::submission::DriverState;
use sparkgate_testing::webhook::{Conduct, Webhook};
use sqlx::PgPool;

use crate::{
    kill::bind,
    world::{World, eventually},
};

/// Returns the names of the `ConfigMap`s of drivers.
async fn config_maps(world: &World) -> Vec<String> {
    let all = world.api::<ConfigMap>().list(&ListParams::default()).await.unwrap().items;
    all.into_iter().filter_map(|map| map.metadata.name).filter(|name| name != "kube-root-ca.crt").collect()
}

/// Reports as a kubelet the state of a driver's container that was started again, after an end with exit code 3.
async fn play_rerun(world: &World, phase: &str, state: Value) {
    let name = world.driver().await.metadata.name.unwrap();
    let first = json!({"terminated": {"exitCode": 3, "reason": "Error", "startedAt": "2026-01-01T00:00:00Z",
        "finishedAt": "2026-01-01T00:00:05Z"}});
    let status = json!({"status": {"phase": phase, "containerStatuses": [{"name": "spark-kubernetes-driver", "image": "spark",
        "imageID": "", "ready": true, "restartCount": 1, "state": state, "lastState": first}]}});
    world.pods().patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

fn restart_fields(pod: Pod) -> Vec<Option<String>> {
    let spec = pod.spec.unwrap();
    let own = spec.containers.into_iter().map(|container| {
        assert_eq!(container.restart_policy_rules, None);
        container.restart_policy
    });
    own.chain([spec.restart_policy]).collect()
}

#[sqlx::test]
async fn a_pod_that_a_webhook_lets_its_kubelet_restart_is_deleted_before_it_starts(pool: PgPool) {
    let world = World::new(pool).await;
    let webhook = Webhook::start(world.admin.clone(), &world.namespace).await;
    let policy = json!([{"op": "add", "path": "/spec/containers/0/restartPolicy", "value": "OnFailure"}]);
    let of_pod = json!([{"op": "replace", "path": "/spec/restartPolicy", "value": "Always"}]);
    for (patch, field) in
        [(policy, "spec.containers[0].restartPolicy: OnFailure"), (of_pod, "spec.restartPolicy: Always")]
    {
        webhook.set(Conduct::Patch(patch));
        let id = world.submit(&[]).await;
        world.set(&id, "max_retries_infrastructure = 1, max_retries_application = 1").await;
        world.service.launcher.work().await.unwrap();
        let status = world.status(&id).await;
        assert_eq!(status.driver_state, DriverState::Error);
        let message = status.message.unwrap();
        assert!(message.contains(field) && message.contains("webhook"), "{message}");
        world.until_no_driver().await;
        assert_eq!(config_maps(&world).await, [""; 0], "without it no driver starts");
    }
    webhook.remove().await;
}

#[sqlx::test]
async fn objects_that_an_earlier_release_stored_restart_no_driver(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[]).await;
    let name = "\"name\":\"spark-kubernetes-driver\"";
    let stored = "UPDATE manifests SET objects = replace(objects, $1, $1 || ',\"restartPolicy\":\"OnFailure\"')";
    assert_eq!(sqlx::query(stored).bind(name).execute(&world.pool).await.unwrap().rows_affected(), 1);
    world.service.launcher.work().await.unwrap();
    assert_eq!(world.events(&id).await.last().unwrap(), "PENDING");
    assert_eq!(restart_fields(world.driver().await), [None, Some("Never".to_owned())]);
}

/// A kubelet restarts a container that its runtime has lost, whatever the policy. A pod of an earlier release may have one.
#[sqlx::test]
async fn a_driver_that_was_started_again_is_stopped_and_its_first_end_counts(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    world.set(&id, "max_retries_application = 1").await;
    bind(&world).await;
    play_rerun(&world, "Running", json!({"running": {"startedAt": "2026-01-01T00:00:06Z"}})).await;
    eventually(|| async { world.driver().await.metadata.deletion_timestamp.ok_or("not deleted") }).await;
    assert_eq!(world.events(&id).await.last().unwrap(), "RUNNING", "no attempt follows while it runs");
    play_rerun(&world, "Failed", json!({"terminated": {"exitCode": 143, "reason": "Error"}})).await;
    eventually(|| async {
        let events = world.events(&id).await;
        (events[4..] == ["FAILED", "QUEUED"]).then_some(()).ok_or(events)
    })
    .await;
    let end: (Option<i32>, String) =
        sqlx::query_as("SELECT exit_code, message FROM attempts").fetch_one(&world.pool).await.unwrap();
    let message = "the driver exited with code 3 (Error); its kubelet started it again, and it was stopped";
    assert_eq!(end, (Some(3), message.to_owned()));
}

/// The pod was created by an earlier release, with a policy of its own, and its driver ended: its kubelet is about to start it.
#[sqlx::test]
async fn the_end_of_a_driver_that_its_kubelet_will_start_again_is_recorded_after_its_deletion(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    bind(&world).await;
    // No field by which a driver is restarted can be added to a pod that exists: this one is a copy.
    let mut pod = world.driver().await;
    let name = pod.metadata.name.clone().unwrap();
    pod.spec.as_mut().unwrap().restart_policy = Some("OnFailure".to_owned());
    (pod.metadata.uid, pod.metadata.resource_version, pod.status) = (None, None, None);
    let strip = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.pods().patch(&name, &PatchParams::default(), &strip).await.unwrap();
    world.remove_driver().await;
    let copy = world.pods().create(&Default::default(), &pod).await.unwrap();
    world.set(&id, &format!("pod_uid = '{}'", copy.metadata.uid.unwrap())).await;
    world.watch();
    world.play_running().await;
    world.until(&id, DriverState::Running).await;
    world.play("Running", json!({"terminated": {"exitCode": 3, "reason": "Error"}})).await;
    eventually(|| async { world.driver().await.metadata.deletion_timestamp.ok_or("not deleted") }).await;
    world.until(&id, DriverState::Failed).await;
    assert_eq!(world.exit_code(&id).await, Some(3));
}
