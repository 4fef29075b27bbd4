//! The identity of pods: other users can remove, overwrite and copy labels, and create a pod under any name.

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    client::Body,
};
use serde_json::{Value, json};
use sparkgate::{
    cluster::labels,
    service::Readiness,
    store::Store,
    submission::{DriverState, SubmissionId},
};
use sparkgate_testing::{
    fault_proxy::{Fault, FaultProxy},
    kube_apiserver::KubeApiserver,
    webhook::{Conduct, Webhook},
};
use sqlx::PgPool;

use crate::world::{World, api_server, eventually};

/// Creates a pod as other users do, with all labels of an attempt's driver.
async fn forge(world: &World, name: &str, id: &SubmissionId, attempt: i32) -> Pod {
    let pod = json!({
        "metadata": {"name": name, "labels": {"spark-role": "driver", labels::SUBMISSION_ID: id.to_string(),
            labels::ATTEMPT: attempt.to_string(), labels::INSTANCE: world.service.submissions.instance().to_string()}},
        "spec": {"containers": [{"name": "spark-kubernetes-driver", "image": "spark"}]},
    });
    world.pods().create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap()
}

fn exited(code: i32) -> Value {
    json!({"terminated": {"exitCode": code, "reason": "Completed"}})
}

async fn patch(world: &World, pod: &str, metadata: Value) {
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    world.pods().patch(pod, &PatchParams::default(), &patch).await.unwrap();
}

async fn labels_are_back(world: &World, pod: &str, id: &SubmissionId) {
    eventually(|| async {
        let labels = world.pods().get(pod).await.unwrap().labels().clone();
        let whole = labels.get(labels::SUBMISSION_ID) == Some(&id.to_string())
            && labels.get(labels::ATTEMPT).map(String::as_str) == Some("1")
            && labels.get(labels::INSTANCE) == Some(&world.service.submissions.instance().to_string())
            && labels.get("spark-role").map(String::as_str) == Some("driver");
        if whole { Ok(()) } else { Err(labels) }
    })
    .await;
}

#[sqlx::test]
async fn a_driver_whose_labels_were_removed_is_followed_to_its_end(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    world.set(&id, "max_retries_infrastructure = 1").await;
    let pod = world.driver().await.name_any();
    let all = json!({labels::INSTANCE: null, labels::SUBMISSION_ID: null, labels::ATTEMPT: null, "spark-role": null});
    for taken in [json!({labels::INSTANCE: null}), all] {
        patch(&world, &pod, json!({ "labels": taken })).await;
        labels_are_back(&world, &pod, &id).await;
    }
    // The annotations, too: the recorded uid is sufficient.
    patch(&world, &pod, json!({"labels": {labels::INSTANCE: null}, "annotations": null})).await;
    labels_are_back(&world, &pod, &id).await;
    world.play_exit(0).await;
    world.until(&id, DriverState::Finished).await;
    assert_eq!(world.events(&id).await, ["QUEUED", "LAUNCHING", "PENDING", "RUNNING", "FINISHED"]);
}

/// A client that removes them again and again must not be answered at once each time. A pause lasts at least as long as it should.
#[sqlx::test]
async fn labels_are_restored_a_second_after_they_were_removed(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    let pod = world.driver().await.name_any();
    patch(&world, &pod, json!({"labels": {labels::INSTANCE: null}})).await;
    labels_are_back(&world, &pod, &id).await;
    let server = KubeApiserver::start().await;
    let log = std::fs::read_to_string(server.file("audit.log")).unwrap();
    let at = |call: &Value| call["requestReceivedTimestamp"].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
    let calls = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_pod = |call: &Value| call["verb"] == "patch" && call["objectRef"]["name"] == *pod;
    let calls: Vec<_> = calls.filter(of_pod).filter(|call| call["objectRef"]["subresource"].is_null()).collect();
    let [removed, restored] = &calls[..] else { panic!("{calls:?}") };
    assert!(at(restored) - at(removed) >= TimeDelta::seconds(1), "{calls:?}");
}

/// A webhook changes the pod while it is created: no watch has shown it with its labels.
#[sqlx::test]
async fn marks_that_a_webhook_removed_at_the_creation_are_back_when_the_launch_is_over(pool: PgPool) {
    let world = World::new(pool).await;
    let webhook = Webhook::start(world.admin.clone(), &world.namespace).await;
    let label = |key: &str| format!("/metadata/labels/{}", key.replace('/', "~1"));
    let renamed = json!([{"op": "remove", "path": label(labels::INSTANCE)},
        {"op": "replace", "path": label(labels::SUBMISSION_ID), "value": "driver-20260101000000-0001"},
        {"op": "replace", "path": label("spark-role"), "value": "other"}]);
    let all = json!([{"op": "remove", "path": "/metadata/labels"}, {"op": "remove", "path": "/metadata/annotations"},
        {"op": "remove", "path": "/metadata/finalizers"}]);
    for patch in [renamed, all] {
        webhook.set(Conduct::Patch(patch));
        let id = world.submit(&[]).await;
        world.service.launcher.work().await.unwrap();
        assert_eq!(world.events(&id).await.last().unwrap(), "PENDING");
        let pod = world.driver_named(&id).await;
        assert_eq!(pod.labels().get(labels::SUBMISSION_ID), Some(&id.to_string()));
        assert_eq!(pod.labels().get(labels::INSTANCE), Some(&world.service.submissions.instance().to_string()));
        assert_eq!(pod.labels().get("spark-role").map(String::as_str), Some("driver"));
        assert_eq!(pod.finalizers(), [labels::FINALIZER]);
        assert!(pod.annotations().contains_key(labels::IDENTITY));
        let container = pod.annotations().get("sparkgate.dev/driver-container");
        assert_eq!(container.map(String::as_str), Some("spark-kubernetes-driver"));
    }
    webhook.remove().await;
}

#[sqlx::test]
async fn a_driver_relabelled_as_another_submissions_is_followed_to_its_end(pool: PgPool) {
    let mut world = World::new(pool).await;
    let ended = world.submit(&[]).await;
    assert!(world.service.submissions.kill(&world.service.anonymous(), &ended).await.unwrap());
    let id = world.submit_running().await;
    let pod = world.driver().await.name_any();
    patch(&world, &pod, json!({"labels": {labels::SUBMISSION_ID: ended.to_string()}})).await;
    labels_are_back(&world, &pod, &id).await;
    world.play_exit(0).await;
    world.until(&id, DriverState::Finished).await;
}

#[sqlx::test]
async fn a_forged_pod_ends_no_submission(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit(&[]).await;
    let forged = forge(&world, "forged", &id, 1).await;
    world.play_on(forged, "Succeeded", exited(0)).await;
    world.watch();
    world.service.launcher.work().await.unwrap();
    let own = world.driver_named(&id).await;
    let forged = forge(&world, "forged-again", &id, 1).await;
    world.play_on(forged, "Failed", exited(9)).await;
    // The watch reports this after all of the above.
    world.play_on(own.clone(), "Running", json!({"running": {}})).await;
    world.until(&id, DriverState::Running).await;
    world.play_on(own, "Succeeded", exited(0)).await;
    world.until(&id, DriverState::Finished).await;
    assert_eq!(world.events(&id).await, ["QUEUED", "LAUNCHING", "PENDING", "RUNNING", "FINISHED"]);
    for name in ["forged", "forged-again"] {
        assert!(world.pods().get_opt(name).await.unwrap().is_some(), "{name} isn't ours and must stay");
    }
}

#[sqlx::test]
async fn a_pod_made_beforehand_with_all_our_labels_is_not_adopted(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[]).await;
    let name = "SELECT names ->> 'driverPod' FROM submissions";
    let name: String = sqlx::query_scalar(name).fetch_one(&world.pool).await.unwrap();
    let theirs = forge(&world, &name, &id, 1).await;
    world.service.launcher.work().await.unwrap();
    assert_eq!(world.status(&id).await.driver_state, DriverState::Error);
    assert_eq!(world.driver().await.metadata.uid, theirs.metadata.uid, "never touched");
}

/// A template can't change what a repeated create and a kill depend on.
#[sqlx::test]
async fn neither_a_template_nor_an_excluded_step_names_the_pod(pool: PgPool) {
    let world = World::new(pool).await;
    let mut request = world.request(&[(
        "spark.kubernetes.driver.pod.excludedFeatureSteps",
        "org.apache.spark.deploy.k8s.features.BasicDriverFeatureStep",
    )]);
    request.driver_pod_template = Some(
        serde_json::from_value(json!({
            "metadata": {"name": "mine", "generateName": "x-", "labels": {"spark-role": "other"}},
            "spec": {"restartPolicy": "Always", "containers": [{"name": "spark-kubernetes-driver", "image": "spark"}]},
        }))
        .unwrap(),
    );
    let id = world.service.submissions.create(&world.service.anonymous(), request).await.unwrap();
    world.service.launcher.work().await.unwrap();
    let pod = world.driver().await;
    assert_eq!(pod.name_any(), world.driver_named(&id).await.name_any());
    assert_eq!((pod.metadata.generate_name, pod.spec.unwrap().restart_policy.as_deref()), (None, Some("Never")));
    assert!(world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
    world.service.launcher.work().await.unwrap();
    world.until(&id, DriverState::Killed).await;
    world.until_no_driver().await;
}

/// With another cluster, the gateway would declare every driver of the database lost, and start retries beside those
/// that run.
#[sqlx::test]
async fn another_cluster_than_the_databases_own_is_left_alone(pool: PgPool) {
    let mut first = World::new(pool).await;
    let id = first.submit_running().await;
    first.set(&id, "max_retries_infrastructure = 1").await;
    first.look_away();
    // The driver doesn't exist in this cluster.
    let uid = "UPDATE cluster_namespaces SET uid = 'of another cluster'";
    sqlx::query(uid).execute(&first.pool).await.unwrap();
    let mut other = World::on(first.pool.clone(), first.client.clone(), first.namespace.clone()).await;
    let pod = other.driver().await.name_any();
    patch(&other, &pod, json!({"finalizers": null})).await;
    other.remove_driver().await;
    let queued = other.submit(&[]).await;
    assert_eq!(other.service.launcher.work().await.unwrap(), 0, "nothing is launched there");
    other.watch();
    eventually(|| async {
        match other.service.health.readiness().await {
            Readiness::NotReady(why) if why.to_string().contains("adopt-cluster") => Ok(()),
            other => Err(other),
        }
    })
    .await;
    assert_eq!(other.events(&id).await, ["QUEUED", "LAUNCHING", "PENDING", "RUNNING"]);

    let store = Store::new(other.pool.clone());
    let cluster = sparkgate::cluster::Cluster::new(other.client.clone(), std::slice::from_ref(&other.namespace));
    let refused = sparkgate::service::adopt_cluster(&store, &cluster, false, true).await.unwrap_err();
    assert!(refused.to_string().contains("1 submissions may have drivers"), "{refused}");
    sparkgate::service::adopt_cluster(&store, &cluster, true, true).await.unwrap();
    eventually(|| async { (other.service.launcher.work().await.unwrap() > 0).then_some(()).ok_or("not launched yet") })
        .await;
    assert_eq!(other.events(&queued).await.last().unwrap(), "PENDING");
}

/// Returns a client to which the server's namespaces are what `answer` says.
fn namespaces_of(client: &Client, answer: fn() -> (u16, Value)) -> Client {
    let real = client.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let real = real.clone();
        async move {
            if request.uri().path().matches('/').count() != 4 || !request.uri().path().contains("/namespaces/") {
                return real.send(request).await;
            }
            let (code, said) = answer();
            let text = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
            Ok(http::Response::builder().status(code).body(Body::from(text.into_bytes())).unwrap())
        }
    });
    Client::new(service, "default")
}

/// A proxy may lead to another cluster, or to none, and an account may have no rights there.
#[sqlx::test]
async fn a_cluster_that_cannot_be_recognized_gets_no_driver(pool: PgPool) {
    let first = World::new(pool.clone()).await;
    let running = first.submit(&[]).await;
    assert_eq!(first.service.launcher.work().await.unwrap(), 1);
    let answers: [fn() -> (u16, Value); 4] = [
        || (403, denied()),
        || (404, missing("kube-system")),
        || (404, json!("404 page not found")),
        || (502, json!("<html>Bad Gateway</html>")),
    ];
    for answer in answers {
        let other = World::on(pool.clone(), namespaces_of(&first.client, answer), first.namespace.clone()).await;
        let (code, said) = answer();
        let error = other.service.health.check_cluster().await.unwrap_err();
        assert!(error.may_pass(), "{code} {said}: {error}");
        let id = other.submit(&[]).await;
        assert_eq!(other.service.launcher.work().await.unwrap(), 0, "{code} {said}");
        assert_eq!(other.events(&id).await, ["QUEUED"]);
        if said.is_object() {
            assert!(error.to_string().contains("isn't known whether"), "{code} {said}: {error}");
        }
    }
    assert_eq!(first.events(&running).await.last().unwrap(), "PENDING");
}

fn denied() -> Value {
    let message = "namespaces is forbidden: User \"u\" cannot get resource \"namespaces\" in API group \"\"";
    json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": message,
        "details": {"kind": "namespaces"}})
}

fn missing(name: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": "not found",
        "details": {"name": name, "kind": "namespaces"}})
}

/// An address may lead to another cluster after years.
#[sqlx::test]
async fn the_cluster_is_recognized_again_before_later_launches(pool: PgPool) {
    let world = World::new(pool).await;
    world.submit(&[]).await;
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
    sqlx::query("UPDATE cluster_namespaces SET uid = 'of another cluster'").execute(&world.pool).await.unwrap();
    let id = world.submit(&[]).await;
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(16)).await;
    tokio::time::resume();
    eventually(|| async {
        assert_eq!(world.service.launcher.work().await.unwrap(), 0);
        world.service.health.check_cluster().await.err().ok_or("not compared")
    })
    .await;
    assert_eq!(world.events(&id).await, ["QUEUED"]);
}

/// The first comparison of a replica that starts during an outage fails, and its first list follows at once.
#[sqlx::test]
async fn pods_that_are_missing_are_found_although_the_cluster_was_not_known_yet(pool: PgPool) {
    let mut first = World::new(pool.clone()).await;
    let id = first.submit_running().await;
    first.look_away();
    let pod = first.driver().await.name_any();
    patch(&first, &pod, json!({"finalizers": null})).await;
    first.remove_driver().await;
    sqlx::query("DELETE FROM watch_positions").execute(&pool).await.unwrap();

    let proxy = FaultProxy::start(api_server().await).await;
    let mut other = first.replica(Store::new(pool), Some(&proxy)).await;
    proxy.set(Fault::Refuse);
    proxy.cut();
    assert!(other.service.health.check_cluster().await.is_err());
    proxy.set(Fault::None);
    other.watch();
    other.until(&id, DriverState::Error).await;
    assert_eq!(other.events(&id).await.last().unwrap(), "LOST");
}
