//! Readiness of a replica.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{Router, body::Body};
use http::Request;
use http_body_util::BodyExt;
use kube::{
    Client, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use sparkgate::{
    api::{HttpSettings, management_router, router},
    service::Readiness,
    store::{DatabaseSettings, Store},
    submission::DriverState,
};
use sparkgate_testing::{
    database,
    fault_proxy::{Fault, FaultProxy, Way},
};
use sqlx::PgPool;
use tower::ServiceExt;

use crate::world::{World, api_server, eventually};

async fn until(world: &World, expected: impl Fn(&Readiness) -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(90);
    loop {
        let now = world.service.health.readiness().await;
        if expected(&now) {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "still {now:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn readyz(router: Router) -> String {
    let request = Request::get("/readyz").body(Body::empty()).unwrap();
    let body = router.oneshot(request).await.unwrap().into_body();
    String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

async fn until_ready(world: &World) {
    until(world, |now| *now == Readiness::Ready).await;
}

fn cut_off(now: &Readiness) -> bool {
    matches!(now, Readiness::NotReady(reason) if reason.summary.contains("cut off from the cluster"))
}

/// Connects to a database as `serve` does, through a proxy.
async fn store_through(pool: &PgPool, proxy: &FaultProxy) -> Store {
    let url = database::url_at(pool, proxy.address());
    Store::connect(&DatabaseSettings { url, max_connections: 6 }).await.unwrap()
}

#[sqlx::test]
async fn a_quiet_watch_that_was_interrupted_is_ready_again(pool: PgPool) {
    let proxy = FaultProxy::start(api_server().await).await;
    let world = World::new(pool.clone()).await;
    let mut replica = world.replica(Store::new(pool), Some(&proxy)).await;
    replica.watch();
    until_ready(&replica).await;
    for _ in 0..2 {
        proxy.set(Fault::Refuse);
        proxy.cut();
        until(&replica, |now| matches!(now, Readiness::Accepting(_))).await;
        proxy.set(Fault::None);
        until_ready(&replica).await;
    }
}

async fn leaves_the_watch(pool: PgPool, fault: Fault) {
    let proxy = FaultProxy::start(api_server().await).await;
    let mut healthy = World::new(pool.clone()).await;
    let mut replica = healthy.replica(Store::new(pool), Some(&proxy)).await;
    replica.watch();
    until_ready(&replica).await;
    let id = healthy.submit(&[]).await;
    healthy.service.launcher.work().await.unwrap();
    healthy.watch();
    until_ready(&healthy).await;

    proxy.set(fault);
    if fault == Fault::Refuse {
        proxy.cut();
    }
    until(&replica, cut_off).await;
    assert!(replica.service.launcher.claim(16).await.unwrap().is_empty(), "claims are left to the other replica, too");
    healthy.play_exit(0).await;
    healthy.until(&id, DriverState::Finished).await;
    until_ready(&healthy).await;

    proxy.set(Fault::None);
    proxy.cut();
    until_ready(&replica).await;
}

#[sqlx::test]
async fn a_replica_that_is_cut_off_from_the_cluster_leaves_the_watch_to_another(pool: PgPool) {
    leaves_the_watch(pool, Fault::Refuse).await;
}

/// Its requests arrive, and their answers don't.
#[sqlx::test]
async fn a_replica_whose_connections_are_silent_leaves_the_watch_to_another(pool: PgPool) {
    leaves_the_watch(pool, Fault::Silent(Way::ToClient)).await;
}

/// The same trouble in the network may lose the resignation: its lease isn't renewed, and expires.
#[sqlx::test]
async fn a_replica_whose_resignations_fail_loses_the_watch_all_the_same(pool: PgPool) {
    let refused = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'a fault of the test'; END $$;
        CREATE TRIGGER refused BEFORE UPDATE ON leases FOR EACH ROW
            WHEN (NEW.name LIKE 'watch/%' AND NEW.expires_at < OLD.expires_at) EXECUTE FUNCTION refuse()";
    sqlx::raw_sql(refused).execute(&pool).await.unwrap();
    leaves_the_watch(pool, Fault::Refuse).await;
}

/// Returns a client whose reads of one pod hang while it is `away`, and whose lists from the cache fail. Watches go on.
fn hanging(client: &Client, away: Arc<AtomicBool>) -> Client {
    let real = client.clone();
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let (away, real) = (away.clone(), real.clone());
        async move {
            let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
            let is_read = request.method() == http::Method::GET && path.contains("/pods/");
            let is_look = query.split('&').any(|part| part == "resourceVersion=0") && !query.contains("watch=");
            if away.load(Ordering::SeqCst) && is_read {
                pending::<()>().await;
            }
            if away.load(Ordering::SeqCst) && is_look {
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503,
                    "reason": "ServiceUnavailable", "message": "a fault of the test"});
                let body = kube::client::Body::from(serde_json::to_vec(&status).unwrap());
                return Ok(http::Response::builder().status(503).body(body).unwrap());
            }
            real.send(request).await
        }
    });
    Client::new(service, "default")
}

/// The watch itself reports nothing wrong, and the batch that waits takes minutes.
#[sqlx::test]
async fn a_replica_whose_look_ups_hang_leaves_the_watch_to_another(pool: PgPool) {
    let mut healthy = World::new(pool.clone()).await;
    let away = Arc::new(AtomicBool::new(false));
    let client = hanging(&healthy.client, away.clone());
    let mut replica = World::on(pool, client, healthy.namespace.clone()).await;
    replica.watch();
    until_ready(&replica).await;
    for _ in 0..64 {
        healthy.submit(&[]).await;
    }
    while healthy.service.launcher.work().await.unwrap() > 0 {}
    healthy.watch();
    until_ready(&healthy).await;
    let lease = [format!("watch/{}", healthy.namespace)];
    assert_eq!(replica.service.leadership.held(), lease);

    away.store(true, Ordering::SeqCst);
    // Pods that disappear from the watch are looked up.
    let without_labels = Patch::Merge(json!({"metadata": {"labels": null}}));
    for pod in healthy.pods().list(&Default::default()).await.unwrap().items {
        healthy.pods().patch(&pod.name_any(), &PatchParams::default(), &without_labels).await.unwrap();
    }
    eventually(|| async {
        let held = healthy.service.leadership.held();
        if held == lease { Ok(()) } else { Err(held) }
    })
    .await;
    until(&replica, cut_off).await;
    until_ready(&healthy).await;
}

#[sqlx::test]
async fn while_no_replica_reaches_the_cluster_submissions_are_accepted(pool: PgPool) {
    let proxy = FaultProxy::start(api_server().await).await;
    let world = World::new(pool.clone()).await;
    let mut replica = world.replica(Store::new(pool.clone()), Some(&proxy)).await;
    replica.watch();
    until_ready(&replica).await;
    proxy.set(Fault::Refuse);
    proxy.cut();
    eventually(|| async {
        let watched = "SELECT count(*) FROM leases WHERE name LIKE 'watch/%' AND expires_at > clock_timestamp()";
        let watched: i64 = sqlx::query_scalar(watched).fetch_one(&pool).await.unwrap();
        (watched == 0).then_some(()).ok_or("it is watched")
    })
    .await;
    assert!(matches!(replica.service.health.readiness().await, Readiness::Accepting(_)));
    let text = readyz(router(replica.service.clone(), HttpSettings::default()).unwrap()).await;
    assert_eq!(text, "ok, but submissions wait for the cluster");
    let detailed = readyz(management_router(replica.service.clone())).await;
    assert!(detailed.starts_with(&format!("{text}: ")), "{detailed}");
    let id = replica.submit(&[]).await;
    proxy.set(Fault::None);
    until_ready(&replica).await;
    replica.service.launcher.work().await.unwrap();
    replica.play_exit(0).await;
    replica.until(&id, DriverState::Finished).await;
}

#[sqlx::test]
async fn a_replica_that_is_cut_off_from_the_database_is_not_ready(pool: PgPool) {
    let proxy = FaultProxy::start(database::server()).await;
    let mut other = World::new(pool.clone()).await;
    let mut replica = other.replica(store_through(&pool, &proxy).await, None).await;
    replica.watch();
    until_ready(&replica).await;
    other.watch();
    until_ready(&other).await;
    for fault in [Fault::Refuse, Fault::Silent(Way::Both), Fault::Silent(Way::ToClient)] {
        proxy.set(fault);
        if fault == Fault::Refuse {
            proxy.cut();
        }
        until(&replica, |now| matches!(now, Readiness::NotReady(_))).await;
        until_ready(&other).await;
        proxy.set(Fault::None);
        proxy.cut();
        until_ready(&replica).await;
    }
}
