//! One namespace, row or pod misbehaves, and the others continue.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::json;
use sparkgate::{
    cluster::WatchReport,
    service::{CleanUpSettings, Service},
    submission::{Container, DriverState, PodObservation, SubmissionId},
};
use sparkgate_testing::webhook::{self, Conduct, Webhook};
use sqlx::{PgPool, postgres::PgPoolOptions};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::world::{World, eventually};

/// Launches due submissions until it is dropped.
fn launch(service: &Service) -> DropGuard {
    let stop = CancellationToken::new();
    tokio::spawn(service.launcher.clone().run(stop.clone()));
    stop.drop_guard()
}

async fn submit_some(world: &World, count: usize) -> Vec<SubmissionId> {
    let mut ids = Vec::new();
    let caller = world.service.anonymous();
    for _ in 0..count {
        // A busy machine may have no free connection for seconds.
        ids.push(eventually(|| world.service.submissions.create(&caller, world.request(&[]))).await);
    }
    ids
}

/// Waits until the pods of all these submissions are created.
async fn until_pending(world: &World, ids: &[SubmissionId]) {
    for id in ids {
        eventually(|| async {
            let events = world.events(id).await;
            (events.last().is_some_and(|state| state == "PENDING")).then_some(()).ok_or(events)
        })
        .await;
    }
}

async fn tries(world: &World, id: &SubmissionId) -> i32 {
    let row = sqlx::query_scalar("SELECT failed_tries FROM submissions WHERE id = $1").bind(id.as_str());
    row.fetch_one(&world.pool).await.unwrap()
}

#[sqlx::test]
async fn a_webhook_changes_the_driver_pod(pool: PgPool) {
    let world = World::new(pool).await;
    let webhook = Webhook::start(world.admin.clone(), &world.namespace).await;
    webhook.set(Conduct::Patch(webhook::side_car("logger")));
    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    assert_eq!(world.status(&id).await.driver_state, DriverState::Submitted);
    let driver: Pod = world.driver().await;
    let containers: Vec<_> = driver.spec.unwrap().containers.into_iter().map(|container| container.name).collect();
    assert_eq!(containers, ["spark-kubernetes-driver", "logger"]);
    assert_eq!(webhook.asked(), 1);
    webhook.remove().await;
}

/// The circuit breakers: a webhook that denies everything opens the breaker of one namespace only.
#[sqlx::test]
async fn a_namespace_that_is_denied_delays_no_other(pool: PgPool) {
    let (bad, good) = World::two(pool).await;
    let webhook = Webhook::start(bad.admin.clone(), &bad.namespace).await;
    webhook.set(Conduct::Deny(429));
    let denied = submit_some(&bad, 3).await;
    let _launching = launch(&bad.service);
    for id in &denied {
        eventually(|| async { (tries(&bad, id).await > 0).then_some(()).ok_or("not tried") }).await;
    }
    let asked = webhook.asked();
    eventually(|| async { (webhook.asked() > asked).then_some(()).ok_or("not retried") }).await;
    until_pending(&good, &submit_some(&good, 20).await).await;
    for id in &denied {
        let status = bad.status(id).await;
        assert_eq!(status.driver_state, DriverState::Submitted);
        assert!(status.message.unwrap().contains("a denial of the test"));
    }
    webhook.set(Conduct::Allow);
    until_pending(&bad, &denied).await;
    webhook.remove().await;
}

/// The launcher's slots: a namespace with a slow webhook uses only its share.
#[sqlx::test]
async fn a_namespace_that_hangs_leaves_slots_to_others(pool: PgPool) {
    let (bad, good) = World::two(pool).await;
    let webhook = Webhook::start(bad.admin.clone(), &bad.namespace).await;
    webhook.set(Conduct::Hang);
    let hanging = submit_some(&bad, 100).await;
    let _launching = launch(&bad.service);
    eventually(|| async { (webhook.asked() == 96).then_some(()).ok_or_else(|| webhook.asked()) }).await;
    until_pending(&good, &submit_some(&good, 5).await).await;
    webhook.set(Conduct::Allow);
    until_pending(&bad, &hanging).await;
    webhook.remove().await;
}

/// The order of claims: the one try of a half-open breaker goes to the submissions in turn.
#[sqlx::test]
async fn a_submission_that_is_denied_delays_no_other_of_its_namespace(pool: PgPool) {
    let world = World::new(pool).await;
    let webhook = Webhook::start(world.admin.clone(), &world.namespace).await;
    webhook.set(Conduct::DenyNamed("bad".to_owned(), 503));
    let mut bad = Vec::new();
    for _ in 0..3 {
        bad.push(world.submit(&[("spark.app.name", "bad")]).await);
    }
    let good = submit_some(&world, 3).await;
    let _launching = launch(&world.service);
    until_pending(&world, &good).await;
    for id in &bad {
        eventually(|| async { (tries(&world, id).await > 1).then_some(()).ok_or("not retried") }).await;
    }
    until_pending(&world, &submit_some(&world, 3).await).await;
    webhook.set(Conduct::Allow);
    until_pending(&world, &bad).await;
    webhook.remove().await;
}

/// The work on pods after their end: a namespace whose pods can't be changed uses only its share.
#[sqlx::test]
async fn pods_whose_finalizer_cannot_be_removed_delay_no_other_namespace(pool: PgPool) {
    let (mut bad, good) = World::two(pool).await;
    bad.watch();
    let webhook = Webhook::start(bad.admin.clone(), &bad.namespace).await;
    let _launching = launch(&bad.service);
    let (stuck, fine) = (submit_some(&bad, 34).await, submit_some(&good, 1).await);
    until_pending(&bad, &stuck).await;
    until_pending(&good, &fine).await;
    webhook.set(Conduct::HangChanges);
    let asked = webhook.asked();
    for id in &stuck {
        bad.play_end_of(id).await;
        bad.until(id, DriverState::Finished).await;
    }
    eventually(|| async { (webhook.asked() >= asked + 32).then_some(()).ok_or_else(|| webhook.asked()) }).await;
    let holds = async || {
        let finalizers = good.driver_named(&fine[0]).await.metadata.finalizers.unwrap_or_default();
        finalizers.iter().any(|name| name == "sparkgate.dev/outcome")
    };
    assert!(holds().await);
    good.play_end_of(&fine[0]).await;
    eventually(|| async { (!holds().await).then_some(()).ok_or("it is held") }).await;
    webhook.remove().await;
}

/// The clean-up: it deletes the pods of a namespace while those of another can't be changed.
#[sqlx::test]
async fn a_namespace_that_hangs_delays_no_clean_up_of_others(pool: PgPool) {
    let (bad, good) = World::two(pool).await;
    let webhook = Webhook::start(bad.admin.clone(), &bad.namespace).await;
    let _launching = launch(&bad.service);
    let (stuck, fine) = (submit_some(&bad, 12).await, submit_some(&good, 1).await);
    until_pending(&bad, &stuck).await;
    until_pending(&good, &fine).await;
    for id in &stuck {
        bad.set(id, "state = 'FINISHED', finished_at = now() - interval '3 days'").await;
    }
    good.set(&fine[0], "state = 'FINISHED', finished_at = now() - interval '2 days'").await;
    webhook.set(Conduct::HangChanges);
    let settings = CleanUpSettings { finished_pod_ttl: Some(Duration::from_secs(3600)), retention: None };
    let leadership = bad.service.leadership.clone();
    let round = tokio::spawn(async move { leadership.clean_up(&settings).await });
    eventually(|| async {
        let left = good.pods().list_metadata(&ListParams::default()).await.unwrap().items.len();
        (left == 0).then_some(()).ok_or(left)
    })
    .await;
    assert!(!round.is_finished());
    webhook.set(Conduct::Allow);
    assert_eq!(round.await.unwrap().unwrap().pods, 13);
    webhook.remove().await;
}

/// Returns a client of an API server that has no pods. What it does with a namespace is decided by `answers`, which gets the number of
/// the call.
fn without_pods(bad: &str, calls: Arc<AtomicUsize>, answers: Answers) -> kube::Client {
    let bad = format!("/namespaces/{bad}/");
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let is_bad = request.uri().path().contains(&bad);
        let name = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        if is_bad {
            calls.fetch_add(1, SeqCst);
        }
        async move {
            let (code, reason) = match (is_bad, answers) {
                (true, Answers::Never) => std::future::pending().await,
                (true, Answers::Unavailable) => (503, "ServiceUnavailable"),
                (false, _) => (404, "NotFound"),
            };
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
                    "details": {"kind": "pods", "name": name}});
            let body = kube::client::Body::from(status.to_string().into_bytes());
            http::Response::builder().status(code).body(body)
        }
    });
    kube::Client::new(service, "default")
}

#[derive(Clone, Copy)]
enum Answers {
    Never,
    Unavailable,
}

/// Inserts submissions that ended so many days ago, with or without a pod.
async fn ended(pool: &PgPool, namespace: &str, numbers: std::ops::Range<i64>, days: i32, pod: Option<&str>) {
    sqlx::query(
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at,
                                  finished_at, pod_uid)
         SELECT 'driver-20260101000000-' || lpad(n::text, 6, '0'), n, 'FINISHED', '{}', '4.3.0', 'tester', $1,
                jsonb_build_object('driverPod', 'pod-' || n), now(), now() - make_interval(days => $4), $5
         FROM generate_series($2, $3 - 1) AS n",
    )
    .bind(namespace)
    .bind(numbers.start)
    .bind(numbers.end)
    .bind(days)
    .bind(pod)
    .execute(pool)
    .await
    .unwrap();
}

/// The clean-up: a namespace has more ended pods than fit into many rounds, all older than those of others, and doesn't answer.
#[sqlx::test]
async fn the_backlog_of_a_namespace_that_hangs_delays_no_clean_up_of_others(pool: PgPool) {
    let calls = Arc::new(AtomicUsize::new(0));
    let world = World::on(pool.clone(), without_pods("bad", calls.clone(), Answers::Never), "good".to_owned()).await;
    ended(&pool, "bad", 10_000..13_000, 4, Some("u")).await;
    ended(&pool, "good", 20_000..20_150, 3, Some("u")).await;
    ended(&pool, "good", 30_000..30_250, 10, None).await;
    let day = Duration::from_secs(24 * 3600);
    let settings = CleanUpSettings { finished_pod_ttl: Some(day), retention: Some(5 * day) };
    let stop = CancellationToken::new();
    let _stops = stop.clone().drop_guard();
    tokio::spawn(world.service.leadership.clone().run_clean_up(settings, stop));
    let left = "SELECT count(*) FILTER (WHERE number < 30000 AND pod_deleted_at IS NULL), count(*) FILTER (WHERE number >= 30000)
                FROM submissions WHERE namespace = 'good'";
    eventually(|| async {
        let left: (i64, i64) = sqlx::query_as(left).fetch_one(&pool).await.unwrap();
        (left == (0, 0)).then_some(()).ok_or(left)
    })
    .await;
    assert_eq!(calls.load(SeqCst), 10, "calls for the namespace that hangs");
}

/// A namespace without an answer isn't asked again at once, and the rest of its pods isn't touched.
#[sqlx::test]
async fn a_namespace_without_an_answer_gets_few_calls(pool: PgPool) {
    let calls = Arc::new(AtomicUsize::new(0));
    let client = without_pods("bad", calls.clone(), Answers::Unavailable);
    let world = World::on(pool.clone(), client, "good".to_owned()).await;
    ended(&pool, "bad", 10_000..13_000, 4, Some("u")).await;
    ended(&pool, "good", 20_000..20_100, 3, Some("u")).await;
    let settings = CleanUpSettings { finished_pod_ttl: Some(Duration::from_secs(3600)), retention: None };
    let first = world.service.leadership.clean_up(&settings).await.unwrap();
    assert_eq!((first.pods, first.put_off), (50, 10), "each namespace has half of a round");
    let after_one_round = calls.load(SeqCst);
    let second = world.service.leadership.clean_up(&settings).await.unwrap();
    assert_eq!((second.pods, second.put_off), (50, 0));
    assert_eq!(calls.load(SeqCst), after_one_round);
}

/// Connects to the same database with the lock timeout of `serve`.
async fn impatient(pool: &PgPool) -> PgPool {
    let options = (*pool.connect_options()).clone().options([("lock_timeout", "500ms")]);
    PgPoolOptions::new().max_connections(5).connect_with(options).await.unwrap()
}

/// The watch's batch, and the workers' connections.
#[sqlx::test]
async fn a_locked_row_delays_no_other(pool: PgPool) {
    let mut world = World::new(impatient(&pool).await).await;
    world.watch();
    let (locked, free) = (submit_some(&world, 20).await, submit_some(&world, 3).await);
    while world.service.launcher.work().await.unwrap() > 0 {}
    #[expect(clippy::disallowed_methods, reason = "no caller drops the future")]
    let mut lock = pool.begin().await.unwrap();
    let ids: Vec<_> = locked.iter().map(SubmissionId::as_str).collect();
    let statement = "SELECT FROM submissions WHERE id = ANY($1) FOR UPDATE";
    sqlx::query(statement).bind(&ids).execute(&mut *lock).await.unwrap();
    for id in &locked {
        world.play_end_of(id).await;
    }
    for id in &free {
        world.play_end_of(id).await;
    }
    for id in &free {
        world.until(id, DriverState::Finished).await;
    }
    for id in &locked {
        assert_eq!(world.events(id).await.last().unwrap(), "PENDING");
    }
    let another = submit_some(&world, 1).await;
    assert_eq!(world.service.launcher.work().await.unwrap(), 1);
    until_pending(&world, &another).await;
    lock.rollback().await.unwrap();
    for id in &locked {
        world.until(id, DriverState::Finished).await;
    }
}

/// Observations that are set aside aren't lost with the process: the next watch begins before them.
#[sqlx::test]
async fn a_watch_that_ends_while_a_row_is_locked_is_resumed_before_it(pool: PgPool) {
    let mut world = World::without_finalizer(pool.clone()).await;
    world.pool = impatient(&pool).await;
    let mut world = World::unheld(world.pool.clone(), world.client.clone(), world.namespace.clone()).await;
    let id = world.submit_running().await;
    let position = async || -> Option<String> {
        let statement = "SELECT resource_version FROM watch_positions";
        sqlx::query_scalar(statement).fetch_optional(&pool).await.unwrap()
    };
    eventually(|| async { position().await.ok_or("no position is kept") }).await;
    #[expect(clippy::disallowed_methods, reason = "no caller drops the future")]
    let mut lock = pool.begin().await.unwrap();
    sqlx::query("SELECT FROM submissions FOR UPDATE").execute(&mut *lock).await.unwrap();
    world.play_exit(0).await;
    world.remove_driver().await;
    let is_set_aside = || !world.service.pods.is_caught_up(Some(&world.namespace));
    eventually(|| async { is_set_aside().then_some(()).ok_or("it is not set aside yet") }).await;
    let before = position().await;
    world.look_away();
    lock.rollback().await.unwrap();
    assert_eq!(position().await, before);
    sqlx::query("UPDATE leases SET expires_at = now()").execute(&pool).await.unwrap();
    world.watch();
    world.until(&id, DriverState::Finished).await;
}

/// A sidecar that never ends keeps the pod running after its driver has ended.
#[sqlx::test]
async fn a_pod_whose_side_car_never_ends_is_deleted_once_its_outcome_is_recorded(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    let (seen, mut shown) = (world.service.pods.clone(), world.service.pods.watch_pods(Some(&world.namespace), None));
    world.play("Running", json!({"terminated": {"exitCode": 0, "reason": "Completed"}})).await;
    let lingering = loop {
        match shown.next().await.unwrap().report {
            Some(WatchReport::Driver(pod)) if matches!(pod.container, Container::Terminated { .. }) => break pod,
            _ => {}
        }
    };
    world.until(&id, DriverState::Finished).await;
    let another = PodObservation { pod_uid: "another".to_owned(), ..(*lingering).clone() };
    seen.end_side_cars(&another).await.unwrap();
    assert_eq!(world.driver().await.metadata.deletion_timestamp, None, "the name may be another pod's by now");
    seen.end_side_cars(&lingering).await.unwrap();
    world.until_no_driver().await;
    assert_eq!(world.events(&id).await.last().unwrap(), "FINISHED");
}
