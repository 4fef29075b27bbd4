//! Queues of the access file: submissions wait for their admission, and run within the caps.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::api::core::v1::ResourceQuota;
use kube::api::PostParams;
use serde_json::{Value, json};
use sparkgate::{
    access::{Grant, Principal, Provider, Role},
    service::{AccessFile, Error, Rest, Session},
    submission::{DriverState, SubmissionId},
};
use sqlx::PgPool;
use tempfile::NamedTempFile;

use crate::world::{World, eventually};

/// Gives the gateway an access file whose tenant has these queues.
async fn configure(world: &mut World, queues: &str) -> NamedTempFile {
    configure_tenant(world, "tenants: {t: {", queues).await
}

/// Does the same with the beginning of the entry of the tenant.
async fn configure_tenant(world: &mut World, tenant: &str, queues: &str) -> NamedTempFile {
    let file = NamedTempFile::new().unwrap();
    let namespace = &world.namespace;
    let text = format!("authentication: {{}}\n{tenant}namespaces: [{namespace}]}}}}\n{queues}\n");
    std::fs::write(file.path(), text).unwrap();
    let path = file.path().to_owned();
    world.configure(|setup| setup.access = Arc::new(AccessFile::open(path, setup.access.settings()).unwrap())).await;
    while !world.service.leadership.acquire("queues").await.unwrap() {}
    file
}

fn caller(world: &World) -> Session {
    let grant = Grant::in_tenant(Role::Operator, "t").unwrap();
    let principal = Principal::new(Provider::ApiKey, "x").unwrap().with_grants(vec![grant]);
    Session::new(Arc::new(principal), world.service.access.current(), None, "test")
}

async fn submit(world: &World, properties: &[(&str, &str)]) -> Result<SubmissionId, Error> {
    world.service.submissions.create(&caller(world), world.request(properties)).await
}

async fn refused(world: &World, properties: &[(&str, &str)]) -> String {
    submit(world, properties).await.unwrap_err().to_string()
}

#[sqlx::test]
async fn a_submission_is_launched_when_its_queue_has_room(pool: PgPool) {
    let mut world = World::new(pool).await;
    let _file = configure(&mut world, "queues: {q: {caps: {cores: 4}}}").await;
    world.watch();
    let first = submit(&world, &[]).await.unwrap();
    let second = submit(&world, &[]).await.unwrap();
    assert_eq!(world.service.launcher.work().await.unwrap(), 0, "nothing is admitted yet");
    // Each takes a core for its driver, and one for each of two executors.
    assert_eq!(world.service.queues.round().await.unwrap(), Rest::Waits);
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
    assert_eq!(world.service.queues.round().await.unwrap(), Rest::Waits);
    assert_eq!(world.service.launcher.work().await.unwrap(), 0);
    let document = world.service.submissions.document(&caller(&world), &second, &world.service.usage).await.unwrap();
    let waiting = document.unwrap().waiting.unwrap();
    assert_eq!((waiting.queue.as_deref(), waiting.ahead, waiting.estimate), (Some("q"), Some(0), None));
    assert_eq!(waiting.reason, "the cap of queue q on cores has no room for 3: 3 of 4 are used");
    let overview = world.service.queues.overview(&caller(&world)).await.unwrap();
    assert_eq!((overview[0].name.as_str(), overview[0].waiting, overview[0].held), ("q", 1, 0));
    world.play_exit(0).await;
    eventually(|| async {
        let status = world.service.submissions.status(&caller(&world), &first).await.unwrap().unwrap();
        (status.driver_state == DriverState::Finished).then_some(()).ok_or("the first hasn't ended")
    })
    .await;
    assert_eq!(world.service.queues.round().await.unwrap(), Rest::Waits);
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
}

#[sqlx::test]
async fn what_a_queue_can_not_take_is_refused(pool: PgPool) {
    let mut world = World::new(pool).await;
    let _file = configure(&mut world, "queues: {q: {caps: {cores: 4}, maxQueued: 1, priority: {max: 5}}}").await;
    let queue = "spark.sparkgate.queue";
    assert!(refused(&world, &[(queue, "p")]).await.contains("\"p\" is not a queue of tenant t: it may use q"));
    assert!(refused(&world, &[("spark.sparkgate.priority", "6")]).await.contains("6 is more than queue q permits, 5"));
    let large = refused(&world, &[("spark.executor.instances", "4")]).await;
    assert!(large.contains("driver and executors need 5 cores together, more than the cap of queue q, 4"), "{large}");
    let unbounded = refused(&world, &[("spark.dynamicAllocation.enabled", "true")]).await;
    assert!(unbounded.contains("spark.dynamicAllocation.maxExecutors"), "{unbounded}");
    submit(&world, &[(queue, "q"), ("spark.sparkgate.priority", "5")]).await.unwrap();
    assert!(matches!(submit(&world, &[]).await, Err(Error::BacklogFull { most: 1, .. })));
}

/// Creates a quota.
async fn limit(world: &World, name: &str, spec: Value) {
    let quota = json!({"metadata": {"name": name}, "spec": spec});
    let quotas = world.api::<ResourceQuota>();
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
}

#[sqlx::test]
async fn the_capacity_is_learned_from_quotas_and_kept_when_they_can_not_be_read(pool: PgPool) {
    let mut world = World::new(pool.clone()).await;
    let file = configure(&mut world, "queues: {q: {}}\ncapacity: {fromResourceQuotas: true, pods: 50}").await;
    let capacity = async |world: &World| {
        let overview = world.service.queues.overview(&caller(world)).await.unwrap();
        overview[0].guaranteed.to_map()
    };
    assert_eq!(capacity(&world).await, [("pods".to_owned(), 50)].into(), "nothing is learned yet");
    limit(&world, "a", json!({"hard": {"requests.cpu": "4", "requests.memory": "64Gi", "pods": "9"}})).await;
    limit(&world, "b", json!({"hard": {"cpu": "3500m", "requests.nvidia.com/gpu": "1"}})).await;
    limit(&world, "scoped", json!({"hard": {"requests.cpu": "1"}, "scopes": ["Terminating"]})).await;
    world.service.queues.learn_capacity().await.unwrap();
    let learned = [("cores", 3500), ("memory", 64 << 30), ("nvidia.com/gpu", 1), ("pods", 50)];
    let learned: BTreeMap<_, _> = learned.map(|(name, amount): (_, u64)| (name.to_owned(), amount)).into();
    assert_eq!(capacity(&world).await, learned);
    let large = refused(&world, &[("spark.executor.instances", "3")]).await;
    assert!(large.contains("need 4 cores together, more than the capacity of all queues, 3.5"), "{large}");
    submit(&world, &[]).await.unwrap();
    let second = submit(&world, &[]).await.unwrap();
    assert_eq!(world.service.queues.round().await.unwrap(), Rest::Waits);
    let document = world.service.submissions.document(&caller(&world), &second, &world.service.usage).await.unwrap();
    let reason = document.unwrap().waiting.unwrap().reason;
    assert_eq!(reason, "the capacity of all queues has no room for 3 cores: 3 of 3.5 are used");

    // A namespace in which the gateway has no rights.
    let wider = format!("namespaces: [{}, elsewhere]", world.namespace);
    let text = std::fs::read_to_string(file.path()).unwrap();
    std::fs::write(file.path(), text.replace(&format!("namespaces: [{}]", world.namespace), &wider)).unwrap();
    let path = file.path().to_owned();
    world.configure(|setup| setup.access = Arc::new(AccessFile::open(path, setup.access.settings()).unwrap())).await;
    world.service.queues.learn_capacity().await.unwrap_err();
    assert_eq!(capacity(&world).await, learned);
}

/// Returns the lines of a metric of a queue.
async fn measured(world: &World, queue: &str) -> BTreeMap<String, f64> {
    let text = world.service.scrape.text().await.unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && line.contains(&format!("queue=\"{queue}\"")));
    let line = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        (name.replace(&format!("queue=\"{queue}\""), "").replace("{}", ""), value.parse().unwrap())
    };
    lines.map(line).collect()
}

#[sqlx::test]
async fn metrics_say_what_waits_and_runs_in_a_queue_and_what_is_lent(pool: PgPool) {
    let mut world = World::new(pool).await;
    let queues = "queues: {of-metrics: {caps: {cores: 4}}, other: {}}\ncapacity: {cores: 4}";
    let tenant = "tenants: {t: {defaultQueue: of-metrics, ";
    let _file = configure_tenant(&mut world, tenant, queues).await;
    for _ in 0..3 {
        submit(&world, &[]).await.unwrap();
    }
    let held = submit(&world, &[]).await.unwrap();
    assert!(world.service.queues.hold(&caller(&world), &held, None).await.unwrap().changed);
    refused(&world, &[("spark.executor.instances", "4")]).await;
    assert_eq!(world.service.queues.round().await.unwrap(), Rest::Waits);
    let found = measured(&world, "of-metrics").await;
    for (name, value) in [
        ("sparkgate_queue_submissions{,standing=\"waiting\"}", 2.0),
        ("sparkgate_queue_submissions{,standing=\"held\"}", 1.0),
        ("sparkgate_queue_submissions{,standing=\"admitted\"}", 1.0),
        ("sparkgate_queue_cap_used_ratio{,resource=\"cores\"}", 0.75),
        ("sparkgate_queue_cores", 3.0),
        ("sparkgate_queue_lent_cores", 1.0),
        ("sparkgate_queue_wait_seconds_count", 1.0),
        ("sparkgate_queue_refused_total{,reason=\"never_fits\"}", 1.0),
    ] {
        assert_eq!(found.get(name), Some(&value), "{name} {found:?}");
    }
    assert!(found["sparkgate_queue_oldest_waiting_seconds"] >= 0.0 && found["sparkgate_queue_memory_bytes"] > 0.0);
    assert!(!measured(&world, "other").await.contains_key("sparkgate_queue_oldest_waiting_seconds"), "nothing waits");
}
