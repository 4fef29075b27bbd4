//! From a committed row to objects in the cluster, or to the API server's error message.

use k8s_openapi::api::{
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service},
    networking::v1::NetworkPolicy,
};
use kube::{
    ResourceExt,
    api::{ListParams, PostParams},
};
use serde_json::json;
use sparkgate::submission::DriverState;
use sparkgate_testing::{
    kube_apiserver::KubeApiserver,
    webhook::{Conduct, Webhook},
};
use sqlx::PgPool;
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

use crate::world::{World, eventually};

#[sqlx::test]
async fn a_launch_creates_the_objects_of_spark_owned_by_the_pod(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[("spark.app.name", "Pi")]).await;
    assert_eq!(world.status(&id).await.driver_state, DriverState::Submitted, "at once");
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);

    let pod = world.driver().await;
    let labels = pod.metadata.labels.clone().unwrap();
    assert_eq!(labels["sparkgate.dev/submission-id"], id.as_str());
    assert_eq!(labels["spark-app-name"], "pi");
    let uid = pod.metadata.uid.clone().unwrap();

    let services = world.api::<Service>().list(&ListParams::default()).await.unwrap().items;
    let policies = world.api::<NetworkPolicy>().list(&ListParams::default()).await.unwrap().items;
    let maps = world.api::<ConfigMap>().list(&ListParams::default()).await.unwrap().items;
    let map = maps.into_iter().find(|map| map.metadata.name.as_ref().unwrap().starts_with("spark-drv-")).unwrap();
    let owners = [&services[0].metadata, &policies[0].metadata, &map.metadata].map(|meta| {
        let owners = meta.owner_references.clone().unwrap();
        (owners[0].uid.clone(), owners[0].controller)
    });
    assert_eq!(owners, [(); 3].map(|()| (uid.clone(), Some(true))));

    let properties = &map.data.unwrap()["spark.properties"];
    let label = format!("spark.kubernetes.executor.label.sparkgate.dev/submission-id={id}\n");
    assert!(properties.contains(&label), "executors carry our label too: {properties}");
    assert_eq!(world.events(&id).await, ["QUEUED", "LAUNCHING", "PENDING"]);
    assert_eq!(world.service.launcher.work().await.unwrap(), 0, "nothing is due any more");
}

#[sqlx::test]
async fn an_interrupted_launch_is_completed_with_the_same_pod(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    let first = world.driver().await.metadata.uid;

    // As if the launcher had died after the pod: back to LAUNCHING, without the objects that are created after the pod.
    let back = "UPDATE submissions SET state = 'LAUNCHING', pod_uid = NULL";
    sqlx::query(back).execute(&world.pool).await.unwrap();
    let services = world.api::<Service>();
    let service = services.list(&ListParams::default()).await.unwrap().items[0].metadata.name.clone().unwrap();
    services.delete(&service, &kube::api::DeleteParams::default()).await.unwrap();

    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
    assert_eq!(world.driver().await.metadata.uid, first, "the same pod");
    assert!(services.get_opt(&service).await.unwrap().is_some(), "made again");
    assert_eq!(world.events(&id).await, ["QUEUED", "LAUNCHING", "PENDING", "PENDING"]);
}

#[sqlx::test]
async fn a_foreign_pod_is_never_touched(pool: PgPool) {
    let world = World::new(pool).await;
    let theirs: Pod = serde_json::from_value(json!({"metadata": {"name": "taken", "labels": {"spark-role": "driver"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]}}))
    .unwrap();
    let theirs = world.pods().create(&PostParams::default(), &theirs).await.unwrap();
    let id = world.submit(&[("spark.kubernetes.driver.pod.name", "taken")]).await;
    world.service.launcher.work().await.unwrap();

    let status = world.status(&id).await;
    assert_eq!(status.driver_state, DriverState::Error);
    let message = status.message.unwrap();
    assert!(message.contains("\"taken\" already exists") && message.contains("isn't this submission's"), "{message}");
    assert_eq!(world.driver().await.metadata.uid, theirs.metadata.uid);
}

#[sqlx::test]
async fn a_refusal_by_the_cluster_ends_with_the_clusters_message(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[("spark.kubernetes.driver.label.a", "no label's value")]).await;
    world.service.launcher.work().await.unwrap();
    let status = world.status(&id).await;
    assert_eq!(status.driver_state, DriverState::Error);
    let message = status.message.unwrap();
    assert!(message.contains("a valid label must be") && message.contains("no label's value"), "{message}");
    assert_eq!(world.driver_count().await, 0);
}

#[sqlx::test]
async fn invalid_names_are_refused_with_their_property(pool: PgPool) {
    let world = World::new(pool).await;
    let long = "x".repeat(300);
    for (key, value) in [
        ("spark.kubernetes.driver.pod.name", long.as_str()),
        ("spark.kubernetes.driver.pod.name", "a/b?c"),
        ("spark.kubernetes.namespace", " default"),
        ("spark.kubernetes.namespace", "default/pods?dryRun=All&x="),
        ("spark.app.name", long.as_str()),
    ] {
        let refusal = world.refusal(&[(key, value)]).await;
        assert!(refusal.starts_with(&format!("sparkProperties[\"{key}\"]")), "{refusal}");
    }
    let refusal = world.refusal(&[("spark.big", &"x".repeat(1 << 20))]).await;
    assert!(refusal.contains("spark.big") && refusal.contains("1048576"), "{refusal}");
}

/// Kubernetes takes objects of 3 MiB, and etcd stores 1.5 MiB: with all that is added to a pod on its way.
#[sqlx::test]
async fn the_largest_pods_that_are_accepted_are_created_and_larger_ones_are_refused(pool: PgPool) {
    let world = World::new(pool).await;
    let of_length = |arguments: Vec<String>, variables: usize, length: usize| {
        let mut request = world.request(&[]);
        request.app_args = arguments;
        let names = (0..variables).map(|number| (format!("VARIABLE_{number}"), "v".repeat(length)));
        request.environment_variables.extend(names);
        request
    };
    let with = |arguments, variables| of_length(arguments, variables, 5);
    let caller = world.service.anonymous();
    let large = || vec!["x".repeat(1_490_000)];
    let mut accepted = Vec::new();
    for request in [with(large(), 0), with(vec!["x".to_owned(); 360_000], 0), of_length(Vec::new(), 4_900, 170)] {
        accepted.push(world.service.submissions.create(&caller, request).await.unwrap());
    }
    for (field, request) in [
        ("appArgs", with(vec!["x".repeat(1_600_000)], 0)),
        ("appArgs", with(large(), 200)),
        ("environmentVariables", of_length(Vec::new(), 4_900, 215)),
    ] {
        let refused = world.service.submissions.create(&caller, request).await.unwrap_err().to_string();
        assert!(refused.contains(field), "{refused}");
    }
    while world.service.launcher.work().await.unwrap() > 0 {}
    for id in &accepted {
        assert_eq!(world.events(id).await.last().unwrap(), "PENDING", "{:?}", world.status(id).await.message);
    }
}

/// A webhook may add more to a pod than there is room for.
#[sqlx::test]
async fn a_pod_that_etcd_does_not_take_ends_with_etcds_message(pool: PgPool) {
    let world = World::new(pool).await;
    for bytes in [1_600_000, 2_200_000] {
        let mut request = world.request(&[]);
        request.app_args = vec!["enlarged".to_owned()];
        let id = world.service.submissions.create(&world.service.anonymous(), request).await.unwrap();
        let enlarge =
            "UPDATE manifests SET objects = replace(objects, 'enlarged', repeat('x', $2)) WHERE submission_id = $1";
        sqlx::query(enlarge).bind(id.as_str()).bind(bytes).execute(&world.pool).await.unwrap();
        world.service.launcher.work().await.unwrap();
        let status = world.status(&id).await;
        assert_eq!(status.driver_state, DriverState::Error, "{bytes}: {:?}", status.message);
        let message = status.message.unwrap();
        assert!(message.contains("too large") || message.contains("larger than max"), "{message}");
    }
}

/// A crash after the driver could start, and the pod was deleted before it was read again.
#[sqlx::test]
async fn a_driver_that_may_have_run_is_never_made_again(pool: PgPool) {
    let world = World::without_finalizer(pool).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    sqlx::query("UPDATE submissions SET state = 'LAUNCHING'").execute(&world.pool).await.unwrap();
    world.remove_driver().await;
    world.service.launcher.work().await.unwrap();
    assert_eq!(world.driver_count().await, 0);
    assert_eq!(world.events(&id).await.last().unwrap(), "LOST");
}

/// During a rollout that changes `--namespaces`, replicas serve different ones.
#[sqlx::test]
async fn a_namespace_that_one_replica_does_not_serve_waits_for_another(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[]).await;
    let narrowed = World::on(world.pool.clone(), world.client.clone(), "another".to_owned()).await;
    assert_eq!(narrowed.service.launcher.work().await.unwrap(), 0);
    assert_eq!(world.events(&id).await, ["QUEUED"]);
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
    assert_eq!(world.driver_count().await, 1);
}

#[sqlx::test]
async fn a_refusal_after_the_pod_deletes_the_pod(pool: PgPool) {
    let mut world = World::new(pool).await;
    world.watch();
    let id = world.submit(&[("spark.kubernetes.driver.service.annotation.bad key", "x")]).await;
    world.service.launcher.work().await.unwrap();
    let status = world.status(&id).await;
    assert_eq!(status.driver_state, DriverState::Error);
    let message = status.message.unwrap();
    assert!(message.contains("creating the Service") && message.contains("bad key"), "{message}");
    world.until_no_driver().await;
}

#[sqlx::test]
async fn a_namespace_that_is_not_ours_is_refused_and_one_that_is_not_there_is_an_error(pool: PgPool) {
    let world = World::new(pool.clone()).await;
    let refusal = world.refusal(&[("spark.kubernetes.namespace", "elsewhere")]).await;
    assert!(refusal.contains("spark.kubernetes.namespace") && refusal.contains("elsewhere"), "{refusal}");

    let client = KubeApiserver::start().await.gateway_everywhere().await;
    let nowhere = World::on(pool, client, "nowhere".to_owned()).await;
    let id = nowhere.submit(&[]).await;
    nowhere.service.launcher.work().await.unwrap();
    let status = nowhere.status(&id).await;
    assert_eq!(status.driver_state, DriverState::Error);
    assert!(status.message.unwrap().contains("namespaces \"nowhere\" not found"));
}

/// The backup is older than the pod, which hasn't started: whether its Secret is ours can't be read.
#[sqlx::test]
async fn a_pending_driver_with_a_secret_is_launched_to_its_end_after_a_restore(pool: PgPool) {
    let world = World::new(pool).await;
    let id = world.submit(&[("spark.kubernetes.authenticate.driver.oauthToken", "secret")]).await;
    world.service.launcher.work().await.unwrap();
    let secrets = world.api::<Secret>().list(&ListParams::default()).await.unwrap().items;
    assert_eq!(secrets.len(), 1);
    let uid = world.driver().await.uid().unwrap();
    world.set(&id, "state = 'QUEUED', pod_uid = NULL, claimed_by = NULL").await;
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
    assert_eq!(world.status(&id).await.message, None);
    assert_eq!(world.events(&id).await.last().unwrap(), "PENDING");
    assert_eq!(world.driver().await.uid().unwrap(), uid);
    let recorded = sqlx::query_scalar("SELECT pod_uid FROM submissions").fetch_one(&world.pool);
    assert_eq!(recorded.await.ok(), Some(uid));
}

/// Panics when a line with this text is logged.
struct Panics(&'static str);

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for Panics {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        let mut line = String::new();
        event.record(&mut |_: &tracing::field::Field, value: &dyn std::fmt::Debug| line += &format!("{value:?}"));
        assert!(!line.contains(self.0), "the panic of this test");
    }
}

#[sqlx::test]
async fn a_panic_while_a_claim_is_returned_leaves_the_row_to_the_next_claim(pool: PgPool) {
    let world = World::new(pool).await;
    let webhook = Webhook::start(world.admin.clone(), &world.namespace).await;
    webhook.set(Conduct::Deny(429));
    let id = world.submit(&[]).await;
    {
        let _panics = tracing_subscriber::registry().with(Panics("work postponed")).set_default();
        assert_eq!(world.service.launcher.work().await.unwrap(), 1);
    }
    assert_eq!(world.events(&id).await, ["QUEUED", "LAUNCHING"], "the claim isn't returned");
    webhook.set(Conduct::Allow);
    // The denial has opened a circuit breaker.
    eventually(|| async { (world.service.launcher.work().await.unwrap() == 1).then_some(()).ok_or("not claimed") })
        .await;
    assert_eq!(world.events(&id).await.last().unwrap(), "PENDING");
    webhook.remove().await;
}

#[sqlx::test]
async fn a_claim_on_demand_belongs_to_the_driver(pool: PgPool) {
    let world = World::new(pool).await;
    let volume = "spark.kubernetes.driver.volumes.persistentVolumeClaim.data";
    let key = |suffix: &str| format!("{volume}.{suffix}");
    let keys = [key("mount.path"), key("options.claimName"), key("options.storageClass"), key("options.sizeLimit")];
    let values = ["/data", "OnDemand", "fast", "10Gi"];
    let properties: Vec<_> = keys.iter().map(String::as_str).zip(values).collect();
    world.submit(&properties).await;
    world.service.launcher.work().await.unwrap();
    let claims = world.api::<PersistentVolumeClaim>().list(&ListParams::default()).await.unwrap().items;
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].owner_references()[0].uid, world.driver().await.uid().unwrap());
    let volumes = world.driver().await.spec.unwrap().volumes.unwrap();
    let named = volumes.iter().find_map(|volume| volume.persistent_volume_claim.as_ref()).unwrap();
    assert_eq!(named.claim_name, claims[0].name_any());
}
