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
use sqlx::PgPool;

use crate::{
    kube_apiserver::rights::USER,
    world::{World, eventually},
};

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
        let client = refusing(&good.client, 7, code, reason, message);
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

/// Returns a client whose first `count` creates get this answer from the server.
fn refusing(client: &Client, count: usize, code: u16, reason: &str, message: &str) -> Client {
    let left = Arc::new(AtomicUsize::new(count));
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": message});
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
    Client::new(service, "default")
}

async fn due_at_once(pool: &PgPool) {
    sqlx::query("UPDATE submissions SET not_before = NULL").execute(pool).await.unwrap();
}

async fn has_rights(world: &World, client: &Client) -> Result<(), String> {
    let list = Request::get(format!("/api/v1/namespaces/{}/pods?limit=1", world.namespace)).body(Vec::new()).unwrap();
    client.request_text(list).await.map(drop).map_err(|error| error.to_string())
}
