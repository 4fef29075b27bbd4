//! Observed executors reach the database, whatever fails on the way.

use std::collections::HashSet;

use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;
use sparkgate::{
    cluster::labels,
    service::Service,
    submission::{Container, ExecutorObservation, ExecutorState, Phase, SubmissionId},
};
use sqlx::PgPool;

use crate::world::{World, eventually};

/// The recorded driver pod of [`with_driver`].
const DRIVER: &str = "driver";

async fn with_driver(world: &World) -> SubmissionId {
    let id = world.submit(&[]).await;
    world.set(&id, "pod_uid = 'driver'").await;
    id
}

fn look(submission: &SubmissionId, id: i64, phase: Phase) -> ExecutorObservation {
    ExecutorObservation {
        submission: submission.clone(),
        attempt: 1,
        executor_id: id,
        driver_uid: DRIVER.to_owned(),
        pod_name: format!("pi-exec-{id}"),
        pod_uid: format!("u{id}"),
        phase,
        deleting: false,
        gone: false,
        node: Some("n".to_owned()),
        reason: None,
        message: None,
        container: Container::Absent,
        created_at: None,
        reservation: Default::default(),
    }
}

fn oom(submission: &SubmissionId, id: i64) -> ExecutorObservation {
    let container = Container::Terminated {
        exit_code: 137,
        reason: Some("OOMKilled".to_owned()),
        message: None,
        started_at: None,
        finished_at: None,
    };
    ExecutorObservation { container, ..look(submission, id, Phase::Failed) }
}

async fn states(service: &Service, id: &SubmissionId) -> Vec<(i64, ExecutorState)> {
    let all = service.submissions.executors(&service.anonymous(), id, None, 10_000).await.unwrap();
    all.into_iter().map(|one| (one.executor_id, one.state)).collect()
}

#[sqlx::test]
async fn an_executors_end_is_kept_with_its_exit_code(pool: PgPool) {
    let world = World::new(pool).await;
    let (service, here) = (&world.service, Some(world.namespace.as_str()));
    let id = with_driver(&world).await;
    service.pods.executors.record_observation(here, &look(&id, 1, Phase::Running));
    service.pods.executors.record_observation(here, &look(&id, 2, Phase::Pending));
    assert_eq!(service.pods.flush_executors(here).await.unwrap(), 2);
    service.pods.executors.record_observation(here, &oom(&id, 1));
    let gone = ExecutorObservation { gone: true, deleting: true, ..oom(&id, 1) };
    service.pods.executors.record_observation(here, &gone);
    service.pods.executors.record_observation(here, &gone);
    assert_eq!(service.pods.flush_executors(here).await.unwrap(), 1);
    assert_eq!(service.pods.flush_executors(here).await.unwrap(), 0, "nothing is new");
    let first = service.submissions.executors(&service.anonymous(), &id, None, 1).await.unwrap().remove(0);
    assert_eq!((first.state, first.exit_code), (ExecutorState::Failed, Some(137)));
    assert_eq!(first.reason.as_deref(), Some("OOMKilled"));
}

#[sqlx::test]
async fn thousands_of_executors_are_written_except_those_of_unknown_submissions(pool: PgPool) {
    let world = World::new(pool).await;
    let service = &world.service;
    let id = with_driver(&world).await;
    let unknown = "driver-20200101000000-9999".parse().unwrap();
    for n in 0..1600 {
        service.pods.executors.record_observation(None, &look(&id, n, Phase::Running));
        service.pods.executors.record_observation(None, &look(&unknown, n, Phase::Running));
    }
    assert!(service.pods.executors.batch_is_full(None));
    assert_eq!(service.pods.flush_executors(None).await.unwrap(), 1600);
    assert!(!service.pods.executors.batch_is_full(None));
    assert_eq!(states(service, &id).await.len(), 1600);
}

#[sqlx::test]
async fn an_executor_that_the_database_refuses_delays_no_other(pool: PgPool) {
    let world = World::new(pool).await;
    let service = &world.service;
    let id = with_driver(&world).await;
    for n in 0..100 {
        // Postgres doesn't accept this year in the form in which it is sent.
        let created_at = (n == 33).then_some(chrono::DateTime::<chrono::Utc>::MAX_UTC);
        service
            .pods
            .executors
            .record_observation(None, &ExecutorObservation { created_at, ..look(&id, n, Phase::Running) });
    }
    assert_eq!(service.pods.flush_executors(None).await.unwrap(), 99);
    assert!(states(service, &id).await.iter().all(|(n, _)| *n != 33));
}

#[sqlx::test]
async fn executors_that_could_not_be_written_are_written_later(pool: PgPool) {
    let world = World::new(pool).await;
    let service = &world.service;
    let id = with_driver(&world).await;
    service.pods.executors.record_observation(None, &look(&id, 1, Phase::Running));
    #[expect(clippy::disallowed_methods, reason = "no caller drops the future")]
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE executors IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let flushing = tokio::spawn({
        let service = service.clone();
        async move { service.pods.flush_executors(None).await }
    });
    eventually(|| async {
        let cancelled: Option<bool> = sqlx::query_scalar(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%jsonb_to_recordset%'",
        )
        .fetch_optional(&world.pool)
        .await
        .unwrap();
        cancelled.ok_or("no session waits for the lock")
    })
    .await;
    assert!(flushing.await.unwrap().unwrap_err().may_pass());
    lock.rollback().await.unwrap();
    service.pods.executors.record_observation(None, &oom(&id, 1));
    assert_eq!(service.pods.flush_executors(None).await.unwrap(), 1);
    assert_eq!(states(service, &id).await, [(1, ExecutorState::Failed)]);
}

#[sqlx::test]
async fn executors_that_ended_without_a_watch_are_found_by_the_first_list(pool: PgPool) {
    let before = World::new(pool).await;
    let here = Some(before.namespace.as_str());
    let id = before.submit(&[]).await;
    before.service.launcher.work().await.unwrap();
    let driver_uid = before.driver().await.metadata.uid.unwrap();
    let look = |n| ExecutorObservation { driver_uid: driver_uid.clone(), ..look(&id, n, Phase::Running) };
    let uid = start(&before, &id, "2").await;
    for n in 1..=3 {
        let pod_uid = if n == 2 { uid.clone() } else { format!("u{n}") };
        before.service.pods.executors.record_observation(here, &ExecutorObservation { pod_uid, ..look(n) });
    }
    assert_eq!(before.service.pods.flush_executors(here).await.unwrap(), 3);

    let after = World::on(before.pool.clone(), before.client.clone(), before.namespace.clone()).await;
    after.service.pods.executors.record_observation(here, &look(1));
    after.service.pods.executors.listed(here, HashSet::from([(id.clone(), 1, 1)]));
    after.service.pods.flush_executors(here).await.unwrap();
    // The second is younger than the list: an earlier watch has reported it.
    let expected = [(1, ExecutorState::Running), (2, ExecutorState::Running), (3, ExecutorState::Deleted)];
    assert_eq!(states(&after.service, &id).await, expected);
}

#[sqlx::test]
async fn a_list_of_one_namespace_says_nothing_of_another(pool: PgPool) {
    let here = World::new(pool.clone()).await;
    let there = World::new(pool).await;
    let ids = [with_driver(&here).await, with_driver(&there).await];
    let service = &here.service;
    for (world, id) in [&here, &there].into_iter().zip(&ids) {
        service.pods.executors.record_observation(Some(&world.namespace), &look(id, 1, Phase::Running));
    }
    for world in [&here, &there] {
        service.pods.flush_executors(Some(&world.namespace)).await.unwrap();
    }
    service.pods.executors.listed(Some(&here.namespace), HashSet::new());
    service.pods.flush_executors(Some(&here.namespace)).await.unwrap();
    assert_eq!(states(service, &ids[0]).await, [(1, ExecutorState::Deleted)]);
    assert_eq!(states(service, &ids[1]).await, [(1, ExecutorState::Running)]);
}

/// Pods as a driver creates them, on a real API server, and the watch that reports them.
#[sqlx::test]
async fn executors_of_the_cluster_are_followed_to_their_ends(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    for n in 1..=4 {
        start(&world, &id, &n.to_string()).await;
    }
    start(&world, &id, "EXECID").await;
    world.watch();
    use ExecutorState::*;
    until(&world, &id, [Pending, Pending, Pending, Pending]).await;
    for n in 1..=4 {
        play(&world, n, "Running", json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})).await;
    }
    until(&world, &id, [Running, Running, Running, Running]).await;
    play(&world, 1, "Succeeded", json!({"terminated": {"exitCode": 0, "reason": "Completed"}})).await;
    play(&world, 2, "Failed", json!({"terminated": {"exitCode": 52, "reason": "Error"}})).await;
    // The driver deletes the pod of a failed executor, and of one that it doesn't need any more.
    for n in [2, 3] {
        world.pods().delete(&format!("pi-exec-{n}"), &DeleteParams::default().grace_period(0)).await.unwrap();
    }
    until(&world, &id, [Succeeded, Failed, Deleted, Running]).await;
    let failed =
        world.service.submissions.executors(&world.service.anonymous(), &id, Some((1, 1)), 1).await.unwrap().remove(0);
    assert_eq!(failed.message.as_deref(), Some("the executor exited with code 52 (Error; JVM OOM)"));
    assert!(failed.created_at.is_some() && failed.finished_at.is_some());

    world.look_away();
    world.pods().delete("pi-exec-4", &DeleteParams::default().grace_period(0)).await.unwrap();
    let mut after = World::on(world.pool.clone(), world.client.clone(), world.namespace.clone()).await;
    after.watch();
    until(&after, &id, [Succeeded, Failed, Deleted, Deleted]).await;
    let counts: (i32, i32, i32, i32, i32) = sqlx::query_as(
        "SELECT executors_pending, executors_running, executors_succeeded, executors_failed, executors_deleted
         FROM submissions",
    )
    .fetch_one(&after.pool)
    .await
    .unwrap();
    assert_eq!(counts, (0, 0, 1, 1, 2));
}

/// Creates the pod of an executor as its driver does; returns the uid.
async fn start(world: &World, id: &SubmissionId, executor: &str) -> String {
    let driver = world.driver().await.metadata;
    let owner =
        json!([{"apiVersion": "v1", "kind": "Pod", "name": driver.name, "uid": driver.uid, "controller": true}]);
    let pod = json!({
        "metadata": {"name": format!("pi-exec-{}", executor.to_lowercase()), "ownerReferences": owner, "labels": {"spark-role": "executor",
            "spark-exec-id": executor, labels::SUBMISSION_ID: id.to_string(), labels::ATTEMPT: "1",
            labels::INSTANCE: world.service.submissions.instance().to_string()}},
        "spec": {"containers": [{"name": "spark-kubernetes-executor", "image": "spark"}]},
    });
    let pod = serde_json::from_value(pod).unwrap();
    world.pods().create(&PostParams::default(), &pod).await.unwrap().metadata.uid.unwrap()
}

async fn play(world: &World, executor: i64, phase: &str, container: serde_json::Value) {
    let status = json!({"status": {"phase": phase, "containerStatuses": [{"name": "spark-kubernetes-executor",
        "image": "spark", "imageID": "", "ready": true, "restartCount": 0, "state": container}]}});
    let name = format!("pi-exec-{executor}");
    world.pods().patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
}

async fn until(world: &World, id: &SubmissionId, expected: [ExecutorState; 4]) {
    eventually(|| async {
        let now: Vec<_> = states(&world.service, id).await.into_iter().map(|(_, state)| state).collect();
        if now == expected { Ok(()) } else { Err(now) }
    })
    .await;
}
