//! Several replicas on one database.

use kube::{
    ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::json;
use sparkgate::{service::Readiness, store::Store};
use sparkgate_testing::{
    database,
    fault_proxy::{Fault, FaultProxy},
    webhook::Conduct,
};
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    hanging_launch::HangingLaunch,
    world::{World, api_server, eventually},
};

async fn leases_run_out(pool: &PgPool) {
    sqlx::query("UPDATE leases SET expires_at = now()").execute(pool).await.unwrap();
}

#[sqlx::test]
async fn a_replica_that_lost_its_lease_writes_nothing_more(pool: PgPool) {
    let world = World::new(pool).await;
    let other = World::on(world.pool.clone(), world.client.clone(), world.namespace.clone()).await;
    let id = world.submit(&[]).await;
    let claimed = world.service.launcher.claim(16).await.unwrap();
    // It was stopped here for longer than its lease.
    leases_run_out(&world.pool).await;
    for replica in [&world, &other] {
        replica.service.leadership.renew().await.unwrap();
    }
    for work in claimed {
        world.service.launcher.carry_out(work).await;
    }
    assert_eq!(world.driver_count().await, 0);
    assert_eq!(world.events(&id).await, ["QUEUED", "LAUNCHING"]);

    assert_eq!(other.service.launcher.work().await.unwrap(), 1, "the other replica has it now");
    assert_eq!(world.driver_count().await, 1);
    assert_eq!(world.events(&id).await, ["QUEUED", "LAUNCHING", "PENDING"]);
}

/// The replica ended after it had recorded the outcome, and another client has removed what shows whose pod it is.
#[sqlx::test]
async fn the_finalizer_of_an_end_that_another_replica_recorded_is_removed(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    world.look_away();
    world.play_exit(1).await;
    let driver = world.driver().await;
    let (name, uid) = (driver.name_any(), driver.uid().unwrap());
    let stripped = json!({"metadata": {"labels": {"spark-role": null}, "annotations": null}});
    world.pods().patch(&name, &PatchParams::default(), &Patch::Merge(stripped)).await.unwrap();
    world.set(&id, &format!("state = 'FAILED', finished_at = now(), pod_uid = '{uid}'")).await;
    assert!(!world.pods().get(&name).await.unwrap().finalizers().is_empty());
    // The watch begins with a list.
    sqlx::query("DELETE FROM watch_positions").execute(&world.pool).await.unwrap();
    world.watch();
    eventually(|| async {
        let held = world.pods().get(&name).await.unwrap().finalizers().to_vec();
        if held.is_empty() { Ok(()) } else { Err(held) }
    })
    .await;
}

/// The call may take effect after the replica's lease went to another one. Its answer isn't waited for, and not acted upon.
#[sqlx::test]
async fn a_call_in_flight_is_dropped_when_the_lease_is_lost(pool: PgPool) {
    let world = World::new(pool).await;
    let HangingLaunch { id, webhook, launch } = HangingLaunch::start(&world).await;
    leases_run_out(&world.pool).await;
    launch.await.unwrap().unwrap();
    let row = sqlx::query_as("SELECT failed_tries, message FROM submissions").fetch_one(&world.pool);
    let row: (i32, Option<String>) = row.await.unwrap();
    assert_eq!(row, (0, None), "the claim of {id} is the next holder's");
    webhook.set(Conduct::Allow);
    webhook.remove().await;
}

#[sqlx::test]
async fn a_claim_or_lease_of_one_replica_is_left_alone_by_the_other(pool: PgPool) {
    let one = World::new(pool).await;
    let other = World::on(one.pool.clone(), one.client.clone(), one.namespace.clone()).await;
    for world in [&one, &other] {
        world.service.leadership.renew().await.unwrap();
    }
    one.submit(&[]).await;
    let claimed = one.service.launcher.claim(16).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(other.service.launcher.claim(16).await.unwrap().len(), 0);
    assert!(one.service.leadership.acquire("watch/*").await.unwrap());
    assert!(!other.service.leadership.acquire("watch/*").await.unwrap());

    // A replica that shuts down releases everything at once.
    one.service.leadership.resign_all().await.unwrap();
    assert_eq!(other.service.launcher.claim(16).await.unwrap().len(), 1);
    assert!(other.service.leadership.acquire("watch/*").await.unwrap());
}

#[sqlx::test]
async fn a_lease_that_another_replica_took_is_no_longer_relied_on(pool: PgPool) {
    let world = World::new(pool).await;
    let leadership = &world.service.leadership;
    assert!(leadership.acquire("watch/x").await.unwrap());
    assert_eq!(leadership.held(), ["watch/x"]);
    let taken =
        "UPDATE leases SET holder = gen_random_uuid(), expires_at = now() + interval '20 s' WHERE name = 'watch/x'";
    sqlx::query(taken).execute(&world.pool).await.unwrap();
    leadership.renew().await.unwrap();
    assert_eq!(leadership.held(), [""; 0]);
    assert!(!leadership.acquire("watch/x").await.unwrap());
}

/// Otherwise it would assume that another replica watches, and be ready before it has listed anything.
#[sqlx::test]
async fn a_single_replica_acquires_the_lease_at_its_first_try(pool: PgPool) {
    let world = World::new(pool).await;
    assert!(world.service.leadership.acquire("watch/*").await.unwrap());
}

/// In a rollout the newer release migrates first. The older one ignores the additions, continues, and may restart.
#[sqlx::test]
async fn an_older_release_works_beside_a_newer_one(pool: PgPool) {
    let world = World::new(pool).await;
    let newer = "ALTER TABLE submissions ADD COLUMN of_the_next_release text NOT NULL DEFAULT 'x'";
    sqlx::query(newer).execute(&world.pool).await.unwrap();
    let applied = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES (9999, 'of the next release', true, '', 0)";
    sqlx::query(applied).execute(&world.pool).await.unwrap();
    let settings = sparkgate::store::DatabaseSettings { url: database::url(&world.pool), max_connections: 4 };
    sparkgate::store::Store::connect(&settings).await.unwrap().close().await;

    let id = world.submit(&[]).await;
    world.service.launcher.work().await.unwrap();
    assert_eq!(world.events(&id).await.last().unwrap(), "PENDING");
}

/// A reply to a claim may be lost. A replica that is cut off from the API server claims nothing, so it would never hear of it.
#[sqlx::test]
async fn a_claim_that_a_replica_which_is_cut_off_does_not_know_of_is_left_to_another(pool: PgPool) {
    let proxy = FaultProxy::start(api_server().await).await;
    let mut healthy = World::new(pool.clone()).await;
    let mut replica = healthy.replica(Store::new(pool.clone()), Some(&proxy)).await;
    replica.watch();
    let holder = "SELECT holder FROM leases WHERE name LIKE 'watch/%' AND expires_at > clock_timestamp()";
    let session: Uuid = eventually(|| sqlx::query_scalar(holder).fetch_one(&pool)).await;
    proxy.set(Fault::Refuse);
    proxy.cut();
    healthy.watch();
    let cut_off = |now: &Readiness| matches!(now, Readiness::NotReady(reason) if reason.summary.contains("cut off"));
    eventually(|| async {
        let now = replica.service.health.readiness().await;
        cut_off(&now).then_some(()).ok_or(now)
    })
    .await;

    let id = healthy.submit(&[]).await;
    let granted = "UPDATE submissions SET claimed_by = $1, claim_epoch = claim_epoch + 1 WHERE id = $2";
    sqlx::query(granted).bind(session).bind(id.as_str()).execute(&pool).await.unwrap();
    assert_eq!(healthy.service.launcher.work().await.unwrap(), 0, "another replica has the claim");
    assert_eq!(replica.service.launcher.work().await.unwrap(), 0);
    assert_eq!(healthy.service.launcher.work().await.unwrap(), 1);
    assert_eq!(healthy.events(&id).await.last().unwrap(), "PENDING");
}
