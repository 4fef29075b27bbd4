//! Transient denials: rights that vanish for a while, and an API server that hasn't loaded them yet.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use http::{Request, Response};
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::{Client, api::DeleteParams, client::Body};
use serde_json::json;
use sparkgate::submission::DriverState;
use sparkgate_testing::rights::USER;
use sqlx::PgPool;

use crate::world::{World, eventually};

const NAME: &str = "sparkgate";

/// The binding of the account's Role is deleted while the gateway runs, and created again.
#[sqlx::test]
async fn rights_that_vanish_and_come_back_end_nothing(pool: PgPool) {
    let mut world = World::new(pool).await;
    let running = world.submit_running().await;
    let bindings = world.api::<RoleBinding>();
    let mut binding = bindings.get(NAME).await.unwrap();
    bindings.delete(NAME, &DeleteParams::default()).await.unwrap();
    eventually(|| async { has_rights(&world, &world.client).await.err().ok_or("it still has its rights") }).await;

    let queued = [world.submit(&[]).await, world.submit(&[]).await];
    for _ in 0..3 {
        world.service.launcher.work().await.unwrap();
        due_at_once(&world.pool).await;
    }
    // Its outcome can't be seen meanwhile.
    world.play_exit(3).await;
    for id in queued.iter().chain([&running]) {
        let status = world.status(id).await;
        let live = matches!(status.driver_state, DriverState::Submitted | DriverState::Running | DriverState::Failed);
        assert!(live, "{id} is {status:?}");
    }

    binding.metadata = kube::core::ObjectMeta { name: Some(NAME.to_owned()), ..Default::default() };
    bindings.create(&Default::default(), &binding).await.unwrap();
    eventually(|| has_rights(&world, &world.client)).await;
    world.until(&running, DriverState::Failed).await;
    eventually(|| async {
        due_at_once(&world.pool).await;
        world.service.launcher.work().await.unwrap();
        let mut launched = 0;
        for id in &queued {
            launched += usize::from(world.events(id).await.last().unwrap() == "PENDING");
        }
        (launched == queued.len()).then_some(()).ok_or("not all are launched")
    })
    .await;
}

/// Kubernetes' own messages while it starts: its RBAC caches are empty, its admission waits for informers, its priority
/// levels are full.
#[sqlx::test]
async fn an_api_server_that_starts_refuses_nothing_for_good(pool: PgPool) {
    let cannot = format!(
        "pods is forbidden: User \"{USER}\" cannot create resource \"pods\" in API group \"\" in the namespace \"spark\": \
         RBAC: role.rbac.authorization.k8s.io \"sparkgate\" not found"
    );
    let answers = [
        (403, "Forbidden", cannot.as_str()),
        (403, "Forbidden", "pods \"pi\" is forbidden: not yet ready to handle request"),
        (429, "TooManyRequests", "the server is currently unable to handle the request"),
    ];
    for (code, reason, message) in answers {
        let good = World::new(pool.clone()).await;
        let (client, _) = refusing(&good.client, 7, code, reason, message);
        let world = World::on(pool.clone(), client, good.namespace.clone()).await;
        let ids = [world.submit(&[]).await, world.submit(&[]).await, world.submit(&[]).await];
        eventually(|| async {
            due_at_once(&world.pool).await;
            world.service.launcher.work().await.unwrap();
            for id in &ids {
                let events = world.events(id).await;
                assert!(
                    ["QUEUED", "LAUNCHING", "PENDING"].contains(&events.last().unwrap().as_str()),
                    "{code} {message}: {events:?}"
                );
            }
            (world.driver_count().await == ids.len()).then_some(()).ok_or("not all are launched")
        })
        .await;
    }
}

/// An operator may delete a namespace and create it again: the queue of its submissions doesn't end with it.
#[sqlx::test]
async fn a_namespace_that_is_missing_for_a_while_ends_one_submission_and_keeps_those_behind_it(pool: PgPool) {
    let good = World::new(pool.clone()).await;
    let message = format!("namespaces \"{}\" not found", good.namespace);
    let (client, left) = refusing(&good.client, 1000, 404, "NotFound", &message);
    let world = World::on(pool, client, good.namespace.clone()).await;
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(world.submit(&[]).await);
    }
    for _ in 0..4 {
        due_at_once(&world.pool).await;
        world.service.launcher.work().await.unwrap();
    }
    let mut live = Vec::new();
    for id in &ids {
        let status = world.status(id).await;
        match status.driver_state {
            DriverState::Error => assert!(status.message.unwrap().contains(&message)),
            _ => live.push(id),
        }
    }
    assert_eq!(live.len(), 19, "one says so");
    left.store(0, SeqCst);
    eventually(|| async {
        due_at_once(&world.pool).await;
        world.service.launcher.work().await.unwrap();
        (world.driver_count().await == live.len()).then_some(()).ok_or("not all are launched")
    })
    .await;
}

/// A webhook denies for now, by the code of its denial.
#[sqlx::test]
async fn a_webhook_that_says_not_now_keeps_the_submission_with_its_words(pool: PgPool) {
    for code in [429, 503] {
        let good = World::new(pool.clone()).await;
        let words = "admission webhook \"queue.example.org\" denied the request: not now";
        let (client, left) = refusing(&good.client, 1000, code, "", words);
        let world = World::on(pool.clone(), client, good.namespace.clone()).await;
        let id = world.submit(&[]).await;
        world.service.launcher.work().await.unwrap();
        let status = world.status(&id).await;
        assert_eq!(status.driver_state, DriverState::Submitted);
        assert!(status.message.unwrap().ends_with(words));
        let reason: Option<String> = sqlx::query_scalar("SELECT reason FROM submissions WHERE id = $1")
            .bind(id.as_str())
            .fetch_one(&world.pool)
            .await
            .unwrap();
        assert_eq!(reason.as_deref(), Some("NotNow"));
        left.store(0, SeqCst);
        eventually(|| async {
            due_at_once(&world.pool).await;
            world.service.launcher.work().await.unwrap();
            (world.driver_count().await == 1).then_some(()).ok_or("it isn't launched")
        })
        .await;
    }
}

/// Returns a client whose first creates get this answer from the server, and how many are left of these.
fn refusing(client: &Client, count: usize, code: u16, reason: &str, message: &str) -> (Client, Arc<AtomicUsize>) {
    let left = Arc::new(AtomicUsize::new(count));
    // The message quotes the name of what is missing.
    let details = json!({"kind": "namespaces", "name": message.split('"').nth(1)});
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": message, "details": details});
    let given = left.clone();
    let (real, status) = (client.clone(), serde_json::to_vec(&status).unwrap());
    let service = tower::service_fn(move |request: Request<Body>| {
        let (left, real, status) = (left.clone(), real.clone(), status.clone());
        async move {
            let creates = request.method() == http::Method::POST;
            if creates && left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)).is_ok() {
                return Ok(Response::builder().status(code).body(Body::from(status)).unwrap());
            }
            real.send(request).await
        }
    });
    (Client::new(service, "default"), given)
}

async fn due_at_once(pool: &PgPool) {
    sqlx::query("UPDATE submissions SET not_before = NULL").execute(pool).await.unwrap();
}

async fn has_rights(world: &World, client: &Client) -> Result<(), String> {
    let list = Request::get(format!("/api/v1/namespaces/{}/pods?limit=1", world.namespace)).body(Vec::new()).unwrap();
    client.request_text(list).await.map(drop).map_err(|error| error.to_string())
}
