//! Queues of the access file: submissions wait for their admission, and run within the caps.

use std::sync::Arc;

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
    let file = NamedTempFile::new().unwrap();
    let namespace = &world.namespace;
    let text = format!("authentication: {{}}\ntenants: {{t: {{namespaces: [{namespace}]}}}}\n{queues}\n");
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
