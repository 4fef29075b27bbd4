//! Faults that the real API server doesn't produce on demand: an outage, and an operation whose reply is lost.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use kube::{
    Client, ResourceExt,
    api::{Patch, PatchParams},
    client::Body,
};
use sparkgate::submission::DriverState;
use sqlx::PgPool;

use crate::world::{World, eventually};

/// What happens to the next writes.
#[derive(Clone, Copy)]
enum Fault {
    /// 503 without a change.
    Away,
    /// The change is made, and then 504.
    ReplyLost,
}

/// Returns a client whose first `count` creates meet the fault.
fn faulty(client: &Client, fault: Fault, count: usize) -> Client {
    faulty_at(client, &http::Method::POST, fault, count)
}

/// Returns a client whose first `count` requests of a method meet the fault.
fn faulty_at(client: &Client, method: &http::Method, fault: Fault, count: usize) -> Client {
    let method = method.clone();
    let left = Arc::new(AtomicUsize::new(count));
    let real = client.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (left, real) = (left.clone(), real.clone());
        let is_faulty = request.method() == method;
        async move {
            let hit = is_faulty && left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
            if hit && matches!(fault, Fault::Away) {
                return Ok(unavailable(503));
            }
            let answer = real.send(request).await?;
            Ok::<_, kube::Error>(if hit { unavailable(504) } else { answer })
        }
    });
    Client::new(service, "default")
}

fn unavailable(code: u16) -> http::Response<Body> {
    let reason = if code == 504 { "Timeout" } else { "ServiceUnavailable" };
    let status = serde_json::json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": "a fault of the test"});
    http::Response::builder().status(code).body(Body::from(serde_json::to_vec(&status).unwrap())).unwrap()
}

async fn due_at_once(pool: &PgPool) {
    sqlx::query("UPDATE submissions SET not_before = NULL").execute(pool).await.unwrap();
}

#[sqlx::test]
async fn an_api_server_that_is_away_leaves_the_submission_waiting(pool: PgPool) {
    let good = World::new(pool.clone()).await;
    let world = World::on(pool, faulty(&good.client, Fault::Away, 1), good.namespace.clone()).await;
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    let status = world.status(&id).await;
    assert_eq!(status.driver_state, DriverState::Submitted);
    assert!(status.message.unwrap().contains("the Kubernetes API is not available"));
    assert_eq!(world.service.launcher.work().await.unwrap(), 0, "not before its time");

    due_at_once(&world.pool).await;
    eventually(|| async { (world.service.launcher.work().await.unwrap() == 1).then_some(()).ok_or("a pause for all") })
        .await;
    assert_eq!(world.driver_count().await, 1);
    assert_eq!(world.status(&id).await.message, None, "the reason is removed");
}

#[sqlx::test]
async fn a_lost_reply_makes_no_second_driver(pool: PgPool) {
    let good = World::new(pool.clone()).await;
    // For the pod and each of the three objects after it.
    let world = World::on(pool, faulty(&good.client, Fault::ReplyLost, 4), good.namespace.clone()).await;
    let id = world.submit(&[]).await;
    for _ in 0..5 {
        world.service.launcher.work().await.unwrap();
        assert_eq!(world.driver_count().await, 1);
        due_at_once(&world.pool).await;
    }
    assert_eq!(world.events(&id).await, ["QUEUED", "LAUNCHING", "PENDING"]);
}

/// The write of a driver's end fails, and the watch reports an end only once.
#[sqlx::test]
async fn an_end_that_could_not_be_written_is_written_later(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;

    #[expect(clippy::disallowed_methods, reason = "no caller drops the future")]
    let mut lock = world.pool.begin().await.unwrap();
    sqlx::query("LOCK TABLE submissions IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    world.play_exit(3).await;
    eventually(|| async {
        let cancelled: Option<bool> = sqlx::query_scalar(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%submissions%'",
        )
        .fetch_optional(&world.pool)
        .await
        .unwrap();
        cancelled.ok_or("no session waits for the lock")
    })
    .await;
    lock.rollback().await.unwrap();
    world.until(&id, DriverState::Failed).await;
}

#[sqlx::test]
async fn a_kill_outlasts_an_api_server_that_is_away(pool: PgPool) {
    let good = World::new(pool.clone()).await;
    let mut world = World::on(pool, faulty(&good.client, Fault::ReplyLost, 1), good.namespace.clone()).await;
    world.watch();
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    assert!(world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
    world.service.launcher.work().await.unwrap();
    world.until(&id, DriverState::Killed).await;
    // The driver whose creation was never confirmed ends, too.
    world.until_no_driver().await;
}

/// The watch doesn't see a pod without labels.
#[sqlx::test]
async fn the_finalizer_of_a_killed_driver_without_labels_is_removed_after_an_outage(pool: PgPool) {
    let mut good = World::new(pool.clone()).await;
    let id = good.submit_running().await;
    good.look_away();
    let driver = good.driver().await.name_any();
    good.play_exit(1).await;
    let without_labels = serde_json::json!({"metadata": {"labels": null}});
    good.pods().patch(&driver, &PatchParams::default(), &Patch::Merge(without_labels)).await.unwrap();
    let away = faulty_at(&good.client, &http::Method::PATCH, Fault::Away, 2);
    let world = World::on(pool, away, good.namespace.clone()).await;
    assert!(world.service.submissions.kill(&world.service.anonymous(), &id).await.unwrap());
    world.service.launcher.work().await.unwrap();
    assert_eq!(world.events(&id).await.last().unwrap(), "KILLED");
    eventually(|| async {
        let finalizers = world.pods().get(&driver).await.unwrap().finalizers().to_vec();
        if finalizers.is_empty() { Ok(()) } else { Err(finalizers) }
    })
    .await;
}

/// The stored data of a submission may be corrupt; it ends, and the others continue.
#[sqlx::test]
async fn a_poisoned_row_never_stops_the_others(pool: PgPool) {
    let world = World::new(pool).await;
    let (poisoned, good) = (world.submit(&[]).await, world.submit(&[]).await);
    let damage = sqlx::query("UPDATE manifests SET objects = '{\"pod\": ' WHERE submission_id = $1");
    damage.bind(poisoned.as_str()).execute(&world.pool).await.unwrap();
    world.service.launcher.work().await.unwrap();
    assert_eq!(world.events(&good).await.last().unwrap(), "PENDING");
    assert_eq!(world.events(&poisoned).await.last().unwrap(), "ERROR");
    assert!(world.status(&poisoned).await.message.unwrap().contains("can't be read"));
}
