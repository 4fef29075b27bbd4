//! Runs that take longer than expected.

use chrono::{TimeDelta, Utc};
use sparkgate::{
    store::Store,
    submission::{DriverState, LATE, SubmissionId},
};
use sqlx::PgPool;

use crate::world::World;

/// Looks for late runs, and returns the reasons of the events of a submission that change no state.
async fn reported(world: &World, id: &SubmissionId) -> Vec<String> {
    let store = Store::new(world.pool.clone());
    store.expect_ends(10).await.unwrap();
    store.report_late(10, Utc::now() + TimeDelta::minutes(1)).await.unwrap();
    let events = "SELECT message FROM submission_events WHERE submission_id = $1 AND state = 'RUNNING' AND reason = $2 ORDER BY id";
    sqlx::query_scalar(events).bind(id.as_str()).bind(LATE).fetch_all(&world.pool).await.unwrap()
}

async fn started_ago(world: &World, id: &SubmissionId, time: &str) {
    world.set(id, &format!("started_at = clock_timestamp() - interval '{time}'")).await;
    sqlx::query("DELETE FROM expected_ends").execute(&world.pool).await.unwrap();
}

#[sqlx::test]
async fn a_run_is_late_after_the_time_that_its_request_names(pool: PgPool) {
    let mut world = World::new(pool).await;
    world.watch();
    let id = world.submit(&[("spark.sparkgate.expectedDuration", "2h")]).await;
    world.service.launcher.work().await.unwrap();
    world.play_running().await;
    world.until(&id, DriverState::Running).await;
    started_ago(&world, &id, "119 minutes").await;
    assert!(reported(&world, &id).await.is_empty());
    started_ago(&world, &id, "121 minutes").await;
    let once = ["still running: 2h were expected"];
    assert_eq!(reported(&world, &id).await, once);
    assert_eq!(reported(&world, &id).await, once, "it is reported once");
    let usage = &world.service.usage;
    let document = world.service.submissions.document(&world.service.anonymous(), &id, usage).await.unwrap().unwrap();
    let late = document.late.unwrap();
    assert_eq!((late.seconds, late.runs), (7200, None));
}

#[sqlx::test]
async fn a_run_is_late_after_three_times_the_median_of_its_name(pool: PgPool) {
    let mut world = World::new(pool).await;
    let id = world.submit_running().await;
    let earlier = "INSERT INTO submissions (id, number, name, state, names, owner, namespace, request, created_at, started_at, finished_at, principal, spark_version, spark_user)
        SELECT 'driver-2026010203040' || g || '-0000', 1000 + g, s.name, 'FINISHED', s.names, s.owner, s.namespace, s.request, at, at,
            at + make_interval(mins => g), s.principal, s.spark_version, s.spark_user
        FROM submissions s, generate_series($1, $2) g, LATERAL (SELECT s.created_at - make_interval(days => g) AS at) a WHERE id = $3";
    let add = async |from: i32, to: i32| {
        sqlx::query(earlier).bind(from).bind(to).bind(id.as_str()).execute(&world.pool).await.unwrap();
    };
    add(1, 4).await;
    started_ago(&world, &id, "1 day").await;
    assert!(reported(&world, &id).await.is_empty(), "four runs are no history");
    add(5, 5).await;
    started_ago(&world, &id, "8 minutes").await;
    assert!(reported(&world, &id).await.is_empty());
    started_ago(&world, &id, "10 minutes").await;
    let late = ["still running: three times as long as the last runs of its name: 3m is the median of 5"];
    assert_eq!(reported(&world, &id).await, late);
}
