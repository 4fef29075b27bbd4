//! The store with its own connections: there may be few, and their plans use indexes.

use std::time::Duration;

use futures::future::join_all;
use sparkgate::{
    store::{DatabaseSettings, Room, Store, replica},
    submission::{Placement, StateChange, SubmissionId},
};
use sqlx::{
    ConnectOptions, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};
use tokio::time::timeout;
use uuid::Uuid;

use crate::support::{publish_statistics, rows_read, rows_read_until_the_end};

const QUEUED: i64 = 5000;
const LAUNCHED: i64 = 20;

async fn connect(pool: &PgPool, max_connections: u32) -> Store {
    let url = pool.connect_options().to_url_lossy().to_string();
    Store::connect(&DatabaseSettings { url, max_connections }).await.unwrap()
}

#[sqlx::test]
async fn each_pool_has_a_connection_however_few_there_are(pool: PgPool) {
    for connections in 3..=16 {
        let store = connect(&pool, connections).await;
        let session = Uuid::new_v4();
        assert!(store.acquire_lease(&replica(session), session, Duration::from_secs(25)).await.unwrap());
        // A request waits less than a second for a connection, and this machine may be busy.
        while store.draw().await.is_err() {}
        assert!(store.claim(session, 1, &[], &[]).await.unwrap().is_empty());
        while store.last_number().await.is_err() {}
        assert!(store.live().await.unwrap().is_empty() && store.live_executors(None).await.unwrap().is_empty());
        store.close().await;
    }
}

/// Thousands are queued at once, and Postgres has no statistics about them yet.
#[sqlx::test]
async fn a_launch_reads_its_own_row_however_many_wait(pool: PgPool) {
    // The planner gets no statistics before the launches are done.
    sqlx::query("ALTER TABLE submissions SET (autovacuum_enabled = off)").execute(&pool).await.unwrap();
    let store = connect(&pool, 16).await;
    let session = Uuid::new_v4();
    assert!(store.acquire_lease(&replica(session), session, Duration::from_secs(25)).await.unwrap());
    let before = rows_read(&pool).await;
    // Statements are planned while there are few rows, and their plans are cached.
    queue(&pool, 0, LAUNCHED).await;
    launch(&store, session).await;
    queue(&pool, LAUNCHED, QUEUED).await;
    launch(&store, session).await;
    let read = rows_read_until_the_end(store, &pool, before).await;
    assert!(read > 0 && read < 50 * LAUNCHED, "{read} rows were read for {} launches", 2 * LAUNCHED);
}

async fn queue(pool: &PgPool, from: i64, count: i64) {
    sqlx::query(
        "INSERT INTO submissions (id, number, state, request, spark_version, spark_user, namespace, names, created_at)
         SELECT 'driver-20260101000000-' || lpad(n::text, 4, '0'), n, 'QUEUED', '{}', '4.3.0', 'tester', 'spark', '{}', now()
         FROM generate_series($1, $1 + $2 - 1) AS n",
    )
    .bind(from)
    .bind(count)
    .execute(pool)
    .await
    .unwrap();
}

/// Runs the queries of a launcher and the watch.
async fn launch(store: &Store, session: Uuid) {
    let claimed = store.claim(session, LAUNCHED, &[], &[]).await.unwrap();
    for one in claimed {
        let uid = Uuid::new_v4().to_string();
        assert!(store.record_pod(&one.id, one.attempt, one.epoch, &uid).await.unwrap().is_some());
        let placement = Placement { pod_uid: Some(uid), ..Placement::default() };
        assert!(
            store.advance(&one.id, one.attempt, Some(one.epoch), &StateChange::Launched, &placement).await.unwrap()
        );
        store.rows(&[one.id.as_str()]).await.unwrap();
        assert!(store.advance(&one.id, one.attempt, None, &StateChange::Running, &placement).await.unwrap());
    }
}

/// A namespace that is left out, or has one try, adds no reads to a claim, however many rows it has.
#[sqlx::test]
async fn a_claim_reads_nothing_of_namespaces_that_are_left_out(options: PgPoolOptions, its: PgConnectOptions) {
    // One connection, whose statistics are published before they are read.
    let pool = options.max_connections(1).connect_with(its).await.unwrap();
    // ANALYZE in the background would read, too.
    sqlx::query("ALTER TABLE submissions SET (autovacuum_enabled = off)").execute(&pool).await.unwrap();
    let store = connect(&pool, 3).await;
    let session = Uuid::new_v4();
    assert!(store.acquire_lease(&replica(session), session, Duration::from_secs(25)).await.unwrap());
    queue(&pool, 0, QUEUED).await;
    queue(&pool, QUEUED, 30).await;
    sqlx::query("UPDATE submissions SET namespace = 'other' WHERE number >= $1")
        .bind(QUEUED)
        .execute(&pool)
        .await
        .unwrap();
    let room = |closed: &[&str], one: &[(&str, i64)]| Room {
        all: 20,
        free: 1000,
        closed: closed.iter().map(|name| (*name).to_owned()).collect(),
        one: one.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect(),
        ..Room::default()
    };
    let claim = async |room: Room| -> Vec<i64> {
        let claimed = store.claim_within(session, &room, &[], &[]).await.unwrap();
        for one in &claimed {
            store.release(one).await.unwrap();
        }
        claimed.iter().map(|one| one.number).collect()
    };
    publish_statistics(&pool).await;
    let before = rows_read(&pool).await;
    assert_eq!(claim(room(&["spark"], &[])).await, (QUEUED..QUEUED + 20).collect::<Vec<_>>());
    assert_eq!(claim(room(&["other"], &[("spark", 700)])).await, [701], "the next after the last one");
    assert_eq!(claim(room(&["other"], &[("spark", QUEUED)])).await, [0], "and then the first again");
    assert_eq!(claim(room(&["other", "spark"], &[])).await, [0_i64; 0]);
    let read = rows_read_until_the_end(store, &pool, before).await;
    assert!(read < QUEUED / 2, "{read} rows were read");
}

/// Opening a connection goes on without the callers that gave up. Otherwise, no connection would ever be open on a machine that
/// opens one more slowly than callers wait.
#[sqlx::test]
async fn a_connection_that_opens_slowly_is_opened_once(pool: PgPool) {
    let store = connect(&pool, 8).await;
    let mut other = pool.acquire().await.unwrap();
    // No backend of the database can start without reading this table.
    sqlx::raw_sql("BEGIN; LOCK pg_class IN ACCESS EXCLUSIVE MODE").execute(&mut *other).await.unwrap();
    let all_others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                      WHERE datname = current_database() AND pid <> pg_backend_pid()";
    sqlx::raw_sql(all_others).execute(&mut *other).await.unwrap();
    let mut opening = Vec::new();
    // Other pools may open one meanwhile, once. Each round would open more, if callers took theirs with them.
    while opening.len() < 10 && opening.windows(2).all(|rounds| rounds[0] != rounds[1]) {
        let answers = join_all((0..8).map(|_| store.last_number())).await;
        assert!(answers.iter().all(Result::is_err));
        let waiting = "SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted AND relation = 'pg_class'::regclass";
        let waiting: i64 = sqlx::query_scalar(waiting).fetch_one(&mut *other).await.unwrap();
        // The first callers may be gone before a backend has started.
        opening.extend(Some(waiting).filter(|waiting| *waiting > 0));
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut *other).await.unwrap();
    while store.last_number().await.is_err() {}
    assert!(opening.len() < 10, "{opening:?}");
}

/// A returned connection goes to the next waiting caller, or stays checked out for the next statement.
#[sqlx::test]
async fn concurrent_requests_all_get_a_connection(pool: PgPool) {
    let store = connect(&pool, 3).await;
    let id: SubmissionId = "driver-20260101000000-0001".parse().unwrap();
    for _ in 0..20 {
        let answers = join_all((0..20).map(|_| store.row(&id))).await;
        assert!(answers.into_iter().all(|answer| answer.unwrap().is_none()));
    }
    // Connections that stay checked out don't prevent the pool from closing.
    timeout(Duration::from_secs(20), store.close()).await.unwrap();
    assert!(store.row(&id).await.is_err());
}
