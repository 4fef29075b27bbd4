//! Pods that a driver leaves behind: the end of an attempt is the end of its pods.

use std::{collections::BTreeSet, time::Duration};

use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy},
};
use serde_json::{Value, json};
use sparkgate::{cluster::labels, submission::DriverState};
use sqlx::PgPool;

use crate::world::{World, eventually};

/// Creates a pod as a driver or another client does.
async fn create(world: &World, name: &str, owner: Option<&Pod>, labels: Value) -> Pod {
    let owners: Vec<_> = owner
        .map(|pod| json!({"apiVersion": "v1", "kind": "Pod", "name": pod.name_any(), "uid": pod.uid(), "controller": true}))
        .into_iter()
        .collect();
    let pod = json!({"metadata": {"name": name, "ownerReferences": owners, "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    world.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap()
}

async fn set_phase(world: &World, name: &str, phase: &str) {
    let status = Patch::Merge(json!({"status": {"phase": phase}}));
    world.pods().patch_status(name, &PatchParams::default(), &status).await.unwrap();
}

/// Deletes what ended drivers left, until these pods are left.
async fn until_left(world: &World, expected: &[&str]) {
    let expected: BTreeSet<_> = expected.iter().map(|name| (*name).to_owned()).collect();
    eventually(|| async {
        world.service.pods.end_dependants(Some(&world.namespace), Duration::ZERO).await.unwrap();
        let all = world.pods().list(&ListParams::default()).await.unwrap().items;
        let names: BTreeSet<_> = all.iter().map(ResourceExt::name_any).collect();
        if names == expected { Ok(()) } else { Err(names) }
    })
    .await;
}

#[sqlx::test]
async fn live_pods_of_a_driver_are_deleted_after_its_end_whatever_their_labels(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    let driver = world.driver().await;
    let name = driver.name_any();
    let application = driver.labels()["spark-app-selector"].clone();
    let own = Some(&driver);
    let marked = json!({"spark-role": "executor", "spark-exec-id": "1", "spark-app-selector": application,
        labels::SUBMISSION_ID: id.to_string(), labels::ATTEMPT: "1",
        labels::INSTANCE: world.service.submissions.instance().to_string()});
    create(&world, "executor", own, marked.clone()).await;
    create(&world, "disguised", own, json!({"spark-role": "driver", "spark-app-selector": "another"})).await;
    create(&world, "plain", own, json!({})).await;
    create(&world, "ended", own, marked.clone()).await;
    set_phase(&world, "ended", "Failed").await;
    // As the garbage collector leaves it after a deletion of its owner that orphans it.
    create(&world, "orphan", None, json!({"spark-role": "executor", "spark-app-selector": application})).await;
    let other = create(&world, "other", None, json!({"spark-app-selector": application})).await;
    create(&world, "others", Some(&other), json!({"spark-role": "executor"})).await;
    assert_eq!(world.service.pods.end_dependants(Some(&world.namespace), Duration::ZERO).await.unwrap(), 0, "it runs");

    world.play_end_of(&id).await;
    world.until(&id, DriverState::Finished).await;
    until_left(&world, &[&name, "ended", "other", "others"]).await;
}

/// A pod that only says that it is the driver of an attempt doesn't end what it owns.
#[sqlx::test]
async fn pods_of_a_forged_driver_are_left_alone(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    let name = world.driver().await.name_any();
    let of_driver = json!({"spark-role": "driver", labels::SUBMISSION_ID: id.to_string(), labels::ATTEMPT: "1",
        labels::INSTANCE: world.service.submissions.instance().to_string()});
    let forged = create(&world, "forged", None, of_driver).await;
    create(&world, "theirs", Some(&forged), json!({"spark-role": "executor"})).await;
    create(&world, "ours", Some(&world.driver_named(&id).await), json!({"spark-role": "executor"})).await;
    set_phase(&world, "forged", "Failed").await;
    let end = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
    world.play_on(world.driver_named(&id).await, "Failed", end).await;
    world.until(&id, DriverState::Failed).await;
    until_left(&world, &[&name, "forged", "theirs"]).await;
}

/// Without the admission policies, a driver may delete its own pod so that its executors belong to no pod.
#[sqlx::test]
async fn executors_of_a_driver_that_orphaned_them_are_deleted(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    let driver = world.driver().await;
    let application = driver.labels()["spark-app-selector"].clone();
    let labels = json!({"spark-role": "executor", "spark-app-selector": application});
    create(&world, "executor", Some(&driver), labels).await;
    let orphan = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    world.pods().delete(&driver.name_any(), &orphan).await.unwrap();
    world.until(&id, DriverState::Killed).await;
    eventually(|| async {
        let left = world.pods().get("executor").await.unwrap().metadata.owner_references.unwrap_or_default();
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await;
    until_left(&world, &[]).await;
}
