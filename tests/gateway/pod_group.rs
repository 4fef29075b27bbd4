//! Volcano's `PodGroup`, which must exist before the pod that it schedules.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, Patch, PatchParams},
    client::Body,
    runtime::{conditions, wait::await_condition},
};
use serde_json::json;
use sparkgate::{service::CleanUpSettings, spark::PodGroup, submission::DriverState};
use sparkgate_testing::kube_apiserver::KubeApiserver;
use sqlx::PgPool;

use crate::world::World;

const VOLCANO: [(&str, &str); 3] = [
    ("spark.kubernetes.driver.pod.featureSteps", "org.apache.spark.deploy.k8s.features.VolcanoFeatureStep"),
    ("spark.kubernetes.scheduler.name", "volcano"),
    ("spark.kubernetes.scheduler.volcano.podGroupTemplateJson", r#"{"spec": {"queue": "research", "minMember": 1}}"#),
];

/// Returns a world whose cluster has Volcano's resource.
async fn with_volcano(pool: PgPool) -> World {
    let world = World::without_finalizer(pool).await;
    let name = "podgroups.scheduling.volcano.sh";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "spec": {"group": "scheduling.volcano.sh", "scope": "Namespaced",
            "names": {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let definitions: Api<CustomResourceDefinition> = Api::all(world.admin.clone());
    definitions.patch(name, &PatchParams::apply("tests").force(), &Patch::Apply(definition)).await.unwrap();
    await_condition(definitions, name, conditions::is_crd_established()).await.unwrap();
    world
}

async fn groups(world: &World) -> Vec<PodGroup> {
    world.api::<PodGroup>().list(&ListParams::default()).await.unwrap().items
}

#[sqlx::test]
async fn a_group_comes_before_its_pod_and_belongs_to_it(pool: PgPool) {
    let world = with_volcano(pool).await;
    let id = world.submit(&VOLCANO).await;
    world.service.launcher.work().await.unwrap();
    assert_eq!(world.events(&id).await.last().unwrap(), "PENDING");

    let pod = world.driver().await;
    let group = groups(&world).await.remove(0);
    assert_eq!(pod.annotations()["scheduling.k8s.io/group-name"], group.name_any());
    assert_eq!(group.spec["queue"], "research");
    assert_eq!(group.owner_references()[0].uid, pod.uid().unwrap());
}

#[sqlx::test]
async fn a_group_is_deleted_when_its_pod_is_refused(pool: PgPool) {
    let world = with_volcano(pool).await;
    let refused = [&VOLCANO[..], &[("spark.kubernetes.driver.label.a", "no label's value")]].concat();
    let id = world.submit(&refused).await;
    world.service.launcher.work().await.unwrap();
    assert_eq!(world.status(&id).await.driver_state, DriverState::Error);
    assert_eq!(groups(&world).await.len(), 0);
}

#[sqlx::test]
async fn a_group_without_a_pod_is_deleted_by_a_kill(pool: PgPool) {
    let world = with_volcano(pool).await;
    let id = world.submit(&VOLCANO).await;
    world.service.launcher.work().await.unwrap();
    // As if the launcher had died between the two, and a kill had been requested.
    let orphan = json!({"metadata": {"ownerReferences": null}});
    let name = groups(&world).await[0].name_any();
    world.api::<PodGroup>().patch(&name, &PatchParams::default(), &Patch::Merge(orphan)).await.unwrap();
    world.remove_driver().await;
    let back = "UPDATE submissions SET state = 'LAUNCHING', pod_uid = NULL";
    sqlx::query(back).execute(&world.pool).await.unwrap();

    assert!(world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
    world.service.launcher.work().await.unwrap();
    assert_eq!(world.status(&id).await.driver_state, DriverState::Killed);
    assert_eq!(groups(&world).await.len(), 0);
}

#[sqlx::test]
async fn an_invalid_group_ends_the_submission_with_the_clusters_message(pool: PgPool) {
    let world = World::new(pool).await;
    let namespace = [("spark.kubernetes.namespace", "nowhere-at-all")];
    let client = KubeApiserver::start().await.gateway_everywhere().await;
    let world = World::on(world.pool.clone(), client, "nowhere-at-all".to_owned()).await;
    let id = world.submit(&[&VOLCANO[..], &namespace].concat()).await;
    world.service.launcher.work().await.unwrap();
    let status = world.status(&id).await;
    assert_eq!(status.driver_state, DriverState::Error);
    assert!(status.message.unwrap().contains("creating the PodGroup"));
}

/// Returns a client whose role lacks Volcano's resource.
fn without_permission(client: &Client) -> Client {
    let real = client.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let real = real.clone();
        async move {
            if !request.uri().path().contains("/podgroups") {
                return real.send(request).await;
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403,
                "reason": "Forbidden", "message": "podgroups is forbidden", "details": {"kind": "podgroups"}});
            let body = Body::from(serde_json::to_vec(&status).unwrap());
            Ok(http::Response::builder().status(403).body(body).unwrap())
        }
    });
    Client::new(service, "default")
}

#[sqlx::test]
async fn a_group_that_may_not_be_created_ends_the_submission_in_error(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let world = World::on(pool, without_permission(&world.client), world.namespace.clone()).await;
    let id = world.submit(&VOLCANO).await;
    world.service.launcher.work().await.unwrap();
    let status = world.status(&id).await;
    assert_eq!(status.driver_state, DriverState::Error);
    assert!(status.message.unwrap().contains("podgroups is forbidden"));
}

/// The launcher died between the creation of the pod and the change of the group's owner, and the driver ended before
/// another replica continued.
#[sqlx::test]
async fn a_group_without_an_owner_is_deleted_by_the_clean_up(pool: PgPool) {
    let mut world = with_volcano(pool).await;
    world.watch();
    let id = world.submit(&VOLCANO).await;
    world.service.launcher.work().await.unwrap();
    let orphan = json!({"metadata": {"ownerReferences": null}});
    let name = groups(&world).await[0].name_any();
    world.api::<PodGroup>().patch(&name, &PatchParams::default(), &Patch::Merge(orphan)).await.unwrap();
    world.play_exit(0).await;
    world.until(&id, DriverState::Finished).await;
    let at_once = CleanUpSettings { finished_pod_ttl: Some(std::time::Duration::ZERO), retention: None };
    world.service.leadership.clean_up(&at_once).await.unwrap();
    assert_eq!(groups(&world).await.len(), 0);
}
