//! Queues of the access file that name a queue of Kueue.

use k8s_openapi::api::rbac::v1::Role;
use kube::{Api, Client, api::DeleteParams};
use sparkgate::{
    service::doctor::{Finding, Level},
    store::Store,
    submission::SubmissionId,
};
use sparkgate_testing::kube_apiserver::KubeApiserver;
use sqlx::PgPool;

use crate::world::{Quota, World};

/// Submits an application with one executor to a queue of the access file.
async fn submit(world: &World, queue: &str) -> SubmissionId {
    world.submit_with(&[("spark.executor.instances", "1"), ("spark.sparkgate.queue", queue)]).await
}

/// The file names no queue of Kueue when the gateway starts.
#[sqlx::test]
async fn a_queue_of_the_access_file_is_admitted_by_kueue(pool: PgPool) {
    let quota = Quota { cores: 2, ..Quota::default() };
    let world = World::with_file(pool, quota, "{plain: {}, gpu: {}}").await;
    let gpu = |local_queue: &str| format!("{{plain: {{}}, gpu: {{kueue: {local_queue}, caps: {{submissions: 2}}}}}}");
    world.change_file(&gpu(&world.namespace));

    let first = submit(&world, "gpu").await;
    let driver = world.driver(&first, 1).await;
    world.until(&first, 1, "PENDING").await;
    assert_eq!(world.workloads().await[0]["spec"]["queueName"], world.namespace);
    let second = submit(&world, "gpu").await;
    world.until_waiting(&second, "WaitingForQuota").await;
    // What Kueue holds counts in the caps of its queue.
    let third = submit(&world, "gpu").await;
    world
        .until_so("the third submission waits for its own queue", async || match world.row(&third).await {
            (state, _, Some(reason)) if state == "QUEUED" => Ok(reason),
            other => Err(format!("{other:?}")),
        })
        .await;
    // The other queue asks Kueue for nothing.
    let plain = submit(&world, "plain").await;
    world.until(&plain, 1, "PENDING").await;
    assert_eq!(world.workloads().await.len(), 2);

    // The Workload of an ended attempt gives its quota back.
    world.play_end(&driver, 0).await;
    world.until(&first, 1, "FINISHED").await;
    world.until(&second, 1, "PENDING").await;
    world.until_waiting(&third, "WaitingForQuota").await;

    // A queue that leaves Kueue launches without it. The Workloads of its attempts still end with them.
    world.change_file("{plain: {}, gpu: {}}");
    ask_again(&world, &third).await;
    world.until(&third, 1, "PENDING").await;
    for id in [&second, &third] {
        world.play_end(&world.driver(id, 1).await, 0).await;
        world.until(id, 1, "FINISHED").await;
    }
    world.until_no_workload().await;
}

#[sqlx::test]
async fn a_workload_follows_its_queue_to_another_local_queue(pool: PgPool) {
    let quota = Quota { cores: 2, ..Quota::default() };
    let world = World::with_file(pool, quota, "{plain: {kueue: missing}}").await;
    let id = submit(&world, "plain").await;
    world.until_waiting(&id, "Misconfigured").await;
    world.change_file(&format!("{{plain: {{kueue: {}}}}}", world.namespace));
    world
        .until_so("the submission is launched", async || {
            ask_again(&world, &id).await;
            let (state, ..) = world.row(&id).await;
            if state == "PENDING" { Ok(()) } else { Err(format!("{:?}", world.status(&id).await)) }
        })
        .await;
    assert_eq!(world.workloads().await[0]["spec"]["queueName"], world.namespace);
}

#[sqlx::test]
async fn doctor_finds_queues_and_rights_that_are_missing(pool: PgPool) {
    let quota = Quota { cores: 2, ..Quota::default() };
    let world = World::with_file(pool, quota, "{plain: {}}").await;
    let gateway = KubeApiserver::start().await.gateway().await;
    assert_eq!(world.findings(gateway.clone()).await, [], "no queue is one of Kueue");

    world.change_file(&format!("{{plain: {{kueue: '{}:missing'}}}}", world.namespace));
    let mut expected = vec![
        ("kueue.api", Level::Ok),
        ("kueue.rights", Level::Ok),
        ("kueue.rights", Level::Ok),
        ("kueue.queue", Level::Skipped),
        ("kueue.priority-class", Level::Failure),
    ];
    until_found(&world, &gateway, &expected).await;
    expected[3] = ("kueue.queue", Level::Ok);
    until_found(&world, &world.admin, &expected).await;

    world.change_file("{plain: {kueue: missing}}");
    expected.truncate(4);
    expected[3] = ("kueue.queue", Level::Failure);
    until_found(&world, &world.admin, &expected).await;

    let roles: Api<Role> = Api::namespaced(world.admin.clone(), &world.namespace);
    roles.delete(&format!("kueue-{}", world.namespace), &DeleteParams::default()).await.unwrap();
    expected[2] = ("kueue.rights", Level::Failure);
    expected[3] = ("kueue.queue", Level::Skipped);
    let findings = until_found(&world, &gateway, &expected).await;
    let message = &findings[2].message;
    assert!(message.contains("create workloads.kueue.x-k8s.io"), "{message}");
}

/// Waits until these are the findings: the API server applies rights a moment later.
async fn until_found(world: &World, client: &Client, expected: &[(&str, Level)]) -> Vec<Finding> {
    let findings = world.until_so("doctor finds it", async || {
        let findings = world.findings(client.clone()).await;
        let levels: Vec<_> = findings.iter().map(|finding| (finding.check, finding.level)).collect();
        if levels == expected { Ok(findings) } else { Err(format!("{findings:?}")) }
    });
    findings.await
}

/// Ends the pause of a launch, which lasts half a minute.
async fn ask_again(world: &World, id: &SubmissionId) {
    Store::new(world.pool.clone()).ask_again(id, 1).await.unwrap();
}
