//! Readiness of a replica.

use std::{net::SocketAddr, time::Duration};

use axum::{Router, body::Body};
use http::Request;
use http_body_util::BodyExt;
use sparkgate::{
    api::{HttpSettings, management_router, router},
    service::Readiness,
    store::{DatabaseSettings, Store},
    submission::DriverState,
};
use sqlx::PgPool;
use tower::ServiceExt;

use crate::{
    fault_proxy::{Fault, FaultProxy, Way},
    world::{World, api_server, eventually},
};

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
    let url = std::env::var("DATABASE_URL").unwrap();
    let (login, _) = url.rsplit_once('@').unwrap();
    let database: String = sqlx::query_scalar("SELECT current_database()").fetch_one(pool).await.unwrap();
    let url = format!("{login}@{}/{database}", proxy.address());
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
    let url = std::env::var("DATABASE_URL").unwrap();
    let server: SocketAddr = url.rsplit_once('@').unwrap().1.split('/').next().unwrap().parse().unwrap();
    let proxy = FaultProxy::start(server).await;
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
